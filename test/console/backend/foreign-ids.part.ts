import { newId } from '@tollgate/contracts';
import type { TestDatabase } from '@tollgate/testing';
import { randomUUID } from 'node:crypto';
import type { BrowserSession } from '../running/browser';
import { API, type Role } from '../running/people';

type Call = [method: string, path: string, body?: unknown];

/** Real ids of another tenant, below the tenant of the person. */
export function foreignIdTests(
  deployed: () => {
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    foreignId: string;
    database: Pick<TestDatabase, 'query'>;
  },
): void {
  it('what belongs to another tenant does not exist below the own one', async () => {
    const { operator, of, tenantId, foreignId, database } = deployed();
    const foreign = `${API}/tenants/${foreignId}`;
    const made = async (path: string, body: object) => {
      const answer = await operator.post(`${foreign}/${path}`, body);
      expect([path, answer.status]).toEqual([path, 201]);
      return answer.json as { id: string };
    };
    const { id: keyId } = await made('keys', { name: 'foreign' });
    const { id: tokenId } = await made('tokens', { name: 'foreign', scopes: ['keys:read'] });
    await made('invitations', { email: 'foreign-id@example.com', role: 'viewer' });
    const { invitations } = (await operator.get(`${foreign}/members`)).json as { invitations: [{ id: string }] };
    const booking = { kind: 'topup', amountCents: 100, reason: 'foreign', ref: 'foreign-id' };
    await operator.post(`${API}/operator/tenants/${foreignId}/credit`, booking);
    const { entries } = (await operator.get(`${foreign}/credit`)).json as { entries: [{ id: string }] };
    const [row] = await database.query<{ id: string }>(
      `SELECT id FROM console."user" WHERE email = 'operator@example.com'`,
    );
    const asked: readonly Call[] = [
      ['PATCH', `keys/${keyId}`, { name: 'taken' }],
      ['POST', `keys/${keyId}/rotate`, { graceSeconds: 0 }],
      ['PUT', `keys/${keyId}/budget`, { budgetCents: 1 }],
      ['DELETE', `keys/${keyId}`],
      ['DELETE', `tokens/${tokenId}`],
      ['DELETE', `invitations/${invitations[0].id}`],
      ['GET', `credit/${entries[0].id}`],
      ['PATCH', `members/${row!.id}`, { role: 'viewer' }],
      ['DELETE', `members/${row!.id}`],
      ['POST', `members/${row!.id}/recovery`, { password: '' }],
    ];
    const elsewhere = (path: string) =>
      path
        .replace(/(key|tok|inv|ent)_\w+/, (_, kind: 'key' | 'tok' | 'inv' | 'ent') => newId(kind))
        .replace(row!.id, randomUUID());
    for (const person of [of('owner'), operator])
      for (const [method, path, body] of asked) {
        const { status, json } = await person.send(method, `${API}/tenants/${tenantId}/${path}`, body);
        expect([method, path, status, json?.error?.code]).toEqual([method, path, 404, 'not_found']);
        // The same words as for what exists nowhere.
        const nowhere = await person.send(method, `${API}/tenants/${tenantId}/${elsewhere(path)}`, body);
        expect([method, path, json.error.message]).toEqual([method, path, nowhere.json.error.message]);
      }
    // All of it is as it was.
    const { data } = (await operator.get(`${foreign}/keys`)).json as { data: { id: string }[] };
    expect(data.find(({ id }) => id === keyId)).toMatchObject({ name: 'foreign', status: 'active' });
    expect((await operator.get(`${foreign}/credit/${entries[0].id}`)).status).toBe(200);
    const after = (await operator.get(`${foreign}/members`)).json as { invitations: { id: string }[] };
    expect(after.invitations.map(({ id }) => id)).toContain(invitations[0].id);
  });
}
