import { RequestMethod, type Type } from '@nestjs/common';
import { newId } from '@tollgate/contracts';
import type { TestDatabase } from '@tollgate/testing';
import { ConsoleModule } from '../../../apps/console/src/console.module';
import { AUTH_CALLS } from '../../../apps/console/src/sign-in/auth-calls';
import { BrowserSession } from '../running/browser';
import { API, type Role, ROLES } from '../running/people';

// Functions with a rest parameter: to one with more parameters than a row has values, Jest passes a callback.
/** `allowed`: O owner, A admin, B billing, M member, V viewer. */
type Route = [method: string, path: string, allowed: string, body?: unknown];
type OperatorRoute = [method: string, path: string, body?: unknown];
const UNKNOWN_TENANT = 'ten_01kd8v7e5bqgrt3m2n9x0c4hya';
const ROUTES: readonly Route[] = [
  ['GET', 'overview', 'OABMV'],
  ['GET', 'usage?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z&step=day&by=model', 'OABMV'],
  ['GET', 'requests?model=sim-small&outcome=complete', 'OABMV'],
  ['GET', 'models', 'OABMV'],
  ['POST', 'playground', 'OAM', { model: 'none', prompt: 'Hi', maxTokens: 1 }],
  ['GET', 'plan', 'OABMV'],
  ['GET', 'keys', 'OABMV'],
  ['POST', 'keys', 'OAM', { name: 'matrix' }],
  ['DELETE', 'keys/key_01kd8v7e5bqgrt3m2n9x0c4hya', 'OAM'],
  ['PATCH', 'keys/key_01kd8v7e5bqgrt3m2n9x0c4hya', 'OAM', { name: 'matrix' }],
  ['POST', 'keys/key_01kd8v7e5bqgrt3m2n9x0c4hya/rotate', 'OAM', { graceSeconds: 0 }],
  ['GET', 'tokens', 'OA'],
  ['POST', 'tokens', 'OA', { name: 'matrix', scopes: ['keys:read'] }],
  ['DELETE', 'tokens/tok_01kd8v7e5bqgrt3m2n9x0c4hya', 'OA'],
  ['GET', 'credit', 'OAB'],
  ['GET', 'credit/ent_01kd8v7e5bqgrt3m2n9x0c4hya', 'OAB'],
  ['GET', 'requests/req_01kd8v7e5bqgrt3m2n9x0c4hya', 'OABMV'],
  ['GET', 'invoices/1000000', 'OAB'],
  ['GET', 'budgets', 'OAB'],
  ['PUT', 'budget', 'OAB', { budgetCents: 5_000 }],
  ['PUT', 'keys/key_01kd8v7e5bqgrt3m2n9x0c4hya/budget', 'OAB', { budgetCents: 100 }],
  ['GET', 'audit?action=budget.set', 'OA'],
  ['GET', 'members', 'OA'],
  ['POST', 'invitations', 'OA', { email: 'somebody@example.com', role: 'viewer' }],
  ['DELETE', 'invitations/inv_01kd8v7e5bqgrt3m2n9x0c4hya', 'OA'],
  ['PATCH', 'members/nobody', 'OA', { role: 'viewer' }],
  ['DELETE', 'members/nobody', 'OA'],
  ['POST', 'members/nobody/recovery', 'O', { password: '' }],
];
const OPERATOR_ROUTES: readonly OperatorRoute[] = [
  ['GET', 'tenants'],
  ['GET', 'plans'],
  ['GET', 'fleet'],
  ['GET', 'live/fleet'],
  ['GET', 'configuration'],
  ['GET', 'invoices'],
  ['GET', 'audit'],
  ['GET', 'people'],
  ['POST', 'people/nobody/recovery', { password: '' }],
  ['POST', 'people/nobody/erase', { password: '' }],
  ['POST', 'tenants', { name: 'mine' }],
  ['GET', `tenants/${UNKNOWN_TENANT}`],
  ['PATCH', `tenants/${UNKNOWN_TENANT}`, { status: 'suspended' }],
  ['POST', `tenants/${UNKNOWN_TENANT}/credit`, {}],
  ['POST', `tenants/${UNKNOWN_TENANT}/credit/preview`, {}],
  ['POST', 'reconcile'],
  ['GET', 'reconcile/rec_01kd8v7e5bqgrt3m2n9x0c4hya'],
];

/** Streams answer those who may not see them like any route. */
const STREAMS: readonly Route[] = [
  ['GET', 'live/overview', 'OABMV'],
  ['GET', 'live/tokens', 'OA'],
];
/** For everybody who is signed in, or for anybody. */
const OTHER_ROUTES = [
  ...['GET me', 'GET sessions', 'DELETE sessions/:id', 'DELETE passkeys/:id', 'POST invitation/accept'],
  ...['POST recovery/request', 'POST recovery/look', 'POST recovery/use', 'POST account/erase'],
  ...['POST invitation/look', 'POST invitation/accept-as-new', 'GET sign-in-options', 'ALL auth/*', 'ALL ', 'ALL *'],
];

/** The calls of the sign-in library that open a session, or end the one that there is. */
const CALLS_FOR_ANYBODY: readonly string[] = [
  ...['POST /sign-in/email', 'POST /sign-in/social', 'GET /callback/oidc', 'POST /sign-out'],
  ...['GET /passkey/generate-authenticate-options', 'POST /passkey/verify-authentication'],
];
/** Fields of all other calls. */
const AUTH_FIELDS = {
  ...{ password: 'correct horse battery', currentPassword: 'x', newPassword: 'another long password' },
  ...{ code: '123456', response: {}, name: 'mine' },
};

/** The controllers of a module and of those that it imports. */
function controllersOf(module: Type): Type[] {
  const listed = (name: string) => (Reflect.getMetadata(name, module) ?? []) as Type[];
  return [...listed('controllers'), ...listed('imports').flatMap(controllersOf)];
}

/** Every route that a controller of the backend binds, without the prefix: `GET tenants/:tenantId/keys`. */
export function boundRoutes(): string[] {
  return [...new Set(controllersOf(ConsoleModule))].flatMap((controller) => {
    const prefix = Reflect.getMetadata('path', controller) as string;
    return Object.values(Object.getOwnPropertyDescriptors(controller.prototype as object)).flatMap(
      ({ value: handler }: PropertyDescriptor) => {
        if (typeof handler !== 'function' || handler === controller || !Reflect.hasMetadata('path', handler)) return [];
        const method = RequestMethod[Reflect.getMetadata('method', handler) as number]!;
        return [Reflect.getMetadata('path', handler) as string | string[]].flat().map((path) => {
          const route = `${prefix}/${path}`.replace(/^console\/api\/?/, '').replace(/\/+$/, '');
          return `${method} ${route}`;
        });
      },
    );
  });
}

/** A route of the tables in the same form: ids are parameters. */
export const matches = (bound: string, method: string, path: string): boolean => {
  const [asked = ''] = path.split('?');
  const pattern = bound.replaceAll(/:\w+/g, '[^/]+').replaceAll('*', '.*');
  return new RegExp(`^${pattern}$`).test(`${method} ${asked}`);
};

/** Who may call what: every route with every role, with a foreign tenant, and without a session. */
export function accessTests(
  deployed: () => {
    base: string;
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    foreignId: string;
    database: Pick<TestDatabase, 'query'>;
  },
): void {
  it.each(ROUTES)(
    '%s %s answers those whose role allows it, and 403 to the others',
    async (...[method, path, who, body]: Route) => {
      for (const role of ROLES) {
        const { status } = await deployed()
          .of(role)
          .send(method, `${API}/tenants/${deployed().tenantId}/${path}`, body);
        const isAllowed = who.includes(role[0]!.toUpperCase());
        expect([role, status === 403]).toEqual([role, !isAllowed]);
        // The ids of the table do not exist.
        if (isAllowed) expect([role, [200, 201, 204, 404]]).toEqual([role, expect.arrayContaining([status])]);
      }
    },
  );

  it.each(ROUTES)('%s %s of a foreign tenant does not exist', async (...[method, path, , body]: Route) => {
    for (const role of ROLES) {
      const answer = await deployed().of(role).send(method, `${API}/tenants/${deployed().foreignId}/${path}`, body);
      expect([role, answer.status, answer.json.error.code]).toEqual([role, 404, 'not_found']);
    }
  });

  it.each(OPERATOR_ROUTES)(
    '%s operator/%s does not exist for those who are no operators',
    async (...[method, path, body]: OperatorRoute) => {
      for (const role of ROLES) {
        const answer = await deployed().of(role).send(method, `${API}/operator/${path}`, body);
        expect([role, answer.status]).toEqual([role, 404]);
      }
    },
  );

  it('the tables of this file name every route that the backend has', () => {
    const named = [
      ...[...ROUTES, ...STREAMS].map(([method, path]) => [method, `tenants/x/${path}`] as const),
      ...OPERATOR_ROUTES.map(([method, path]) => [method, `operator/${path}`] as const),
    ];
    const bound = boundRoutes();
    expect(bound.length).toBeGreaterThan(40);
    const missing = bound.filter(
      (route) => !OTHER_ROUTES.includes(route) && !named.some(([method, path]) => matches(route, method, path)),
    );
    expect(missing).toEqual([]);
  });

  it('a tenant that does not exist is 404 for an operator, whatever is asked', async () => {
    const ofTenant = [...ROUTES, ...STREAMS].map(([method, path, , body]) => [method, path, body] as const);
    const { data } = (await deployed().operator.get(`${API}/operator/audit?limit=1`)).json as {
      data: [{ id: string }];
    };
    for (const tenantId of [newId('ten'), 'ten_x']) {
      const asked = [
        ...ofTenant.map(([method, path, body]) => [method, `tenants/${tenantId}/${path}`, body] as const),
        ...OPERATOR_ROUTES.filter(([, path]) => path.includes(UNKNOWN_TENANT)).map(
          ([method, path, body]) => [method, `operator/${path.replace(UNKNOWN_TENANT, tenantId)}`, body] as const,
        ),
      ];
      for (const [method, path, body] of asked) {
        const { status, json } = await deployed().operator.send(method, `${API}/${path}`, body);
        expect([method, path, status, json.error?.code]).toEqual([method, path, 404, 'not_found']);
      }
    }
    // Nothing was written, so the log has nothing new.
    expect((await deployed().operator.get(`${API}/operator/audit?limit=1`)).json.data).toMatchObject(data);
  });

  it.each(STREAMS)('%s %s is closed to other roles and tenants', async (...[method, path, who]: Route) => {
    for (const role of ROLES) {
      const foreign = await deployed().of(role).send(method, `${API}/tenants/${deployed().foreignId}/${path}`);
      expect([role, foreign.status]).toEqual([role, 404]);
      if (who.includes(role[0]!.toUpperCase())) continue;
      const refused = await deployed().of(role).send(method, `${API}/tenants/${deployed().tenantId}/${path}`);
      expect([role, refused.status]).toEqual([role, 403]);
    }
  });

  it('every route refuses a person without a session', async () => {
    const nobody = new BrowserSession(deployed().base);
    const all = [
      ...ROUTES.map(([method, path, , body]) => [method, `tenants/${deployed().tenantId}/${path}`, body] as const),
      ...OPERATOR_ROUTES.map(([method, path, body]) => [method, `operator/${path}`, body] as const),
      ...STREAMS.map(([method, path]) => [method, `tenants/${deployed().tenantId}/${path}`, undefined] as const),
      ['GET', 'me', undefined] as const,
      ['GET', 'sessions', undefined] as const,
      ['DELETE', 'sessions/x', undefined] as const,
      ['DELETE', 'passkeys/x', undefined] as const,
      ['POST', 'invitation/accept', {}] as const,
      ['POST', 'account/erase', {}] as const,
    ];
    for (const [method, path, body] of all)
      expect([path, (await nobody.send(method, `${API}/${path}`, body)).status]).toEqual([path, 401]);
  });

  it('every call of the sign-in library that is not for anybody refuses a person without a session', async () => {
    const calls = [...AUTH_CALLS].filter((call) => !CALLS_FOR_ANYBODY.includes(call));
    expect(calls.length).toBe(AUTH_CALLS.size - CALLS_FOR_ANYBODY.length);
    for (const call of calls) {
      await deployed().database.query('DELETE FROM console."rateLimit"');
      const nobody = new BrowserSession(deployed().base);
      const [method = '', path = ''] = call.split(' ');
      const answer = await nobody.send(method, `${API}/auth${path}`, method === 'GET' ? undefined : AUTH_FIELDS);
      expect([call, answer.status]).toEqual([call, 401]);
      expect([call, nobody.cookies.size]).toEqual([call, 0]);
    }
  });

  // All writes: writes.part.ts.
  it('a write is refused from an origin that only resembles that of the console', async () => {
    const { base } = deployed();
    const { protocol, hostname, port } = new URL(base);
    for (const origin of [
      ...['null', '', `${base}/`, `${base}.evil.example`, `${protocol}//${hostname}`, base.toUpperCase()],
      ...[base.replace('http:', 'https:'), `${protocol}//evil.${hostname}:${port}`, `${base}, https://evil.example`],
    ]) {
      const answer = await deployed().operator.post(`${API}/operator/tenants`, { name: 'forged' }, { origin });
      expect([origin, answer.status, answer.json.error.code]).toEqual([origin, 403, 'wrong_origin']);
      expect(answer.json.error.message).toContain('Open that address.');
      expect(answer.json.error.message).toContain(`${base}/console `);
    }
  });

  it('an admin neither makes nor changes owners, and the last owner stays', async () => {
    const [row] = await deployed().database.query<{ id: string }>(
      `SELECT id FROM console."user" WHERE email = 'owner@example.com'`,
    );
    const members = `${API}/tenants/${deployed().tenantId}/members`;
    const owner = `${members}/${row!.id}`;
    const invited = { email: 'new@example.com', role: 'owner' };
    expect(
      (await deployed().of('admin').post(`${API}/tenants/${deployed().tenantId}/invitations`, invited)).status,
    ).toBe(403);
    await deployed().of('owner').post(`${API}/tenants/${deployed().tenantId}/invitations`, invited);
    const open = async () =>
      ((await deployed().operator.get(members)).json as { invitations: { id: string; role: string }[] }).invitations;
    const { id } = (await open()).find(({ role }) => role === 'owner')!;
    const withdrawn = `${API}/tenants/${deployed().tenantId}/invitations/${id}`;
    expect((await deployed().of('admin').send('DELETE', withdrawn)).status).toBe(403);
    expect((await open()).map((one) => one.id)).toContain(id);
    expect((await deployed().of('owner').send('DELETE', withdrawn)).status).toBe(204);
    expect((await deployed().of('admin').send('DELETE', owner)).status).toBe(403);
    expect((await deployed().of('admin').send('PATCH', owner, { role: 'viewer' })).status).toBe(403);
    expect((await deployed().of('owner').send('DELETE', owner)).json.error.code).toBe('last_owner');
    expect((await deployed().operator.send('PATCH', owner, { role: 'viewer' })).json.error.code).toBe('last_owner');
  });
}
