import { newId } from '@tollgate/contracts';
import { MANAGEMENT_ROUTES } from '../../../apps/gateway/src/management/routes';
import type { Endpoint } from '../../../apps/gateway/src/openapi/operation';
import { type RouteTable, routesOf } from '../../../apps/gateway/src/openapi/route-table';
import { OPERATOR_ROUTES } from '../../../apps/gateway/src/operator/routes';
import { send } from '../ask';
import { OPERATOR_SECRET, type Services } from '../services';

/**
 * The writes of a table, with a valid body. The paths name nothing that exists, because no body may reach a service.
 */
function writesOf(table: RouteTable<Endpoint | null>) {
  const ids: Record<string, string> = { tenantId: newId('ten'), accountingNumber: '1', id: newId('key') };
  return routesOf(table).flatMap(({ path, method, operation }) => {
    if (method === 'get' || operation === null) return [];
    const [body = {}] = Object.values(operation.body?.examples ?? {});
    const url = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? newId('ent'));
    return [{ method: method.toUpperCase(), url, body }];
  });
}

export function unknownFieldsTests(services: Services): void {
  let token: string;
  beforeAll(async () => {
    token = (await services.tenant()).token;
  });

  it.each<[string, RouteTable<Endpoint | null>, () => [url: string, token: string]]>([
    ['operator', OPERATOR_ROUTES, () => [services.operatorUrl, OPERATOR_SECRET]],
    ['management', MANAGEMENT_ROUTES, () => [services.publicUrl, token]],
  ])('every write of the %s API refuses a field that it does not know, and names it', async (_, table, caller) => {
    const [url, credential] = caller();
    const writes = writesOf(table);
    expect(writes.length).toBeGreaterThan(1);
    for (const { method, url: path, body } of writes) {
      const answer = await send(url + path, { method, token: credential, body: { ...body, profil: 'dev' } });
      expect([method, path, answer.status, answer.json]).toEqual([
        method,
        path,
        400,
        {
          error: {
            code: 'unknown_field',
            message: expect.stringMatching(/^"profil" is not a field of this endpoint\./),
          },
        },
      ]);
    }
  });

  it('an unknown field inside of a list is named with its path', async () => {
    const head = { tenantId: newId('ten'), sequence: 1, hash: '5e'.repeat(32), note: 'x' };
    const path = '/_operator/v1/journal/compare';
    const answer = await send(services.operatorUrl + path, { token: OPERATOR_SECRET, body: { heads: [head] } });
    expect([answer.status, answer.json.error]).toEqual([
      400,
      { code: 'unknown_field', message: '"heads.0.note" is not a field of this endpoint.' },
    ]);
  });

  it('no key is issued with a misspelt profile', async () => {
    const keys = () => send(`${services.publicUrl}/_api/v1/keys`, { token });
    const before = (await keys()).json.data.length;
    const body = { name: 'dev', profil: 'default' };
    expect((await send(`${services.publicUrl}/_api/v1/keys`, { token, body })).json.error.message).toBe(
      '"profil" is not a field of this endpoint. It has: name, profile, expiresAt, owner, tags, models.',
    );
    expect((await keys()).json.data).toHaveLength(before);
  });
}
