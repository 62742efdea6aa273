import { eventually, type TestDatabase } from '@tollgate/testing';
import type { BrowserSession } from '../running/browser';
import { API, type Role } from '../running/people';

const WAITS = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

/** A member who becomes an owner while somebody changes it. */
export function promotedTests(
  deployed: () => {
    of: (role: Role) => BrowserSession;
    tenantId: string;
    database: Pick<TestDatabase, 'query'>;
  },
): void {
  it.each<[string, string, unknown]>([
    ['demotes', 'PATCH', { role: 'viewer' }],
    ['removes', 'DELETE', undefined],
  ])('an admin never %s a member who becomes an owner at the same time', async (_change, method, body) => {
    const { of, tenantId, database } = deployed();
    const ofMember = `SELECT id FROM console."user" WHERE email = 'member@example.com'`;
    const [{ id }] = (await database.query<{ id: string }>(ofMember)) as [{ id: string }];
    const giveRole = (role: string) =>
      database.query('UPDATE console.membership SET role = $1 WHERE tenant_id = $2 AND user_id = $3 RETURNING role', [
        ...[role, tenantId, id],
      ]);
    await database.query('BEGIN');
    await giveRole('owner');
    const answer = of('admin').send(method, `${API}/tenants/${tenantId}/members/${id}`, body);
    await eventually(async () => {
      await database.query('SELECT pg_stat_clear_snapshot()');
      expect(await database.query(WAITS)).toHaveLength(1);
    });
    await database.query('COMMIT');
    const { status, json } = await answer;
    expect([status, json?.error?.code]).toEqual([403, 'forbidden']);
    expect(await giveRole('member')).toEqual([{ role: 'member' }]);
  });
}
