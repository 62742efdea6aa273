import type { AuditAction, AuditRow } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { MANAGEMENT_ROUTES } from '../../../apps/gateway/src/management/routes';
import { routesOf } from '../../../apps/gateway/src/openapi/route-table';
import { OPERATOR_ROUTES } from '../../../apps/gateway/src/operator/routes';
import { type Answer, askOperator, send } from '../ask';
import { useServices } from '../services';

// Months are not closed automatically, because the test closes one.
const services = useServices({ invoiceCloseDelayMs: 20 * 365 * 24 * 3_600_000 });
const ask = askOperator(services);
const rows = async (query = ''): Promise<AuditRow[]> => (await ask(`/audit?limit=200${query}`)).json.data;

const OCTOBER_END = '2026-10-31T23:59:59.999Z';
let tenantId: string;
let keyId: string;
let tokenId: string;
let managed: { token: string; tenantId: string; tokenId: string };
let managedKey: string;
let operatorId: string;
beforeAll(async () => {
  managed = await services.tenant();
  tenantId = (await ask('/tenants', { body: { name: 'Acme' } })).json.data.id;
  const made = async (path: string, body: object) => (await ask(path, { body })).json.data.id as string;
  keyId = await made(`/tenants/${tenantId}/keys`, { name: 'k' });
  tokenId = await made(`/tenants/${tenantId}/tokens`, { name: 't', scopes: ['usage:read'] });
  operatorId = await made('/operator-tokens', { name: 'old', scopes: ['read'] });
  await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1_000, ref: 'seed' } });
  const keys = `${services.publicUrl}/_api/v1/keys`;
  managedKey = (await send(keys, { token: managed.token, body: { name: 'm' } })).json.data.id;
  const requestNanos = String(33n * 10_000_000n);
  const event = {
    ...{
      id: `req_01k8xw9v00${'0'.repeat(16)}`,
      tenantId,
      keyId,
      model: 'sim-small',
      kind: 'chat' as const,
      stream: false,
    },
    price: { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0', requestNanos },
    ...{ startedAt: OCTOBER_END, promptTokens: 1, cachedTokens: 0, completionTokens: 1, costNanos: requestNanos },
    ...{ overrunNanos: '0', estimated: false, outcome: 'complete' as const, endedAt: OCTOBER_END },
  };
  await services.messages.publish('usage-events', [event]);
  await eventually(async () => {
    const { json } = await ask(`/tenants/${tenantId}/credit`);
    expect(json.data.balanceCents).toBe(967);
  });
});

/** Each write of both APIs, by its operation, done once so that it changes something. In this order. */
const WRITES: Record<string, () => Promise<Answer>> = {
  createTenant: () => ask('/tenants', { body: { name: 'Second' } }),
  suspendTenant: () => ask(`/tenants/${tenantId}/suspend`, { method: 'POST' }),
  resumeTenant: () => ask(`/tenants/${tenantId}/resume`, { method: 'POST' }),
  repairTenant: () => ask(`/tenants/${tenantId}/repair`, { body: {} }),
  addCredit: () => ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 500, ref: 'a' } }),
  refundCredit: () => ask(`/tenants/${tenantId}/credit/refund`, { body: { amountCents: 5, ref: 'r' } }),
  adjustCredit: () => ask(`/tenants/${tenantId}/credit/adjust`, { body: { amountCents: 5, ref: 'j', reason: 'x' } }),
  setTenantBudget: () => ask(`/tenants/${tenantId}/budget`, { method: 'PUT', body: { monthlyBudgetCents: 10_000 } }),
  setKeyBudget: () =>
    ask(`/tenants/${tenantId}/keys/${keyId}/budget`, { method: 'PUT', body: { monthlyBudgetCents: 1_000 } }),
  createKey: () => ask(`/tenants/${tenantId}/keys`, { body: { name: 'k2' } }),
  updateKey: () => ask(`/tenants/${tenantId}/keys/${keyId}`, { method: 'PATCH', body: { owner: 'anna' } }),
  rotateKey: () => ask(`/tenants/${tenantId}/keys/${keyId}/rotate`, { body: { graceSeconds: 60 } }),
  applyKeys: () => ask(`/tenants/${tenantId}/keys/apply`, { body: { keys: [{ name: 'of a list' }] } }),
  revokeKey: () => ask(`/tenants/${tenantId}/keys/${keyId}`, { method: 'DELETE' }),
  createToken: () => ask(`/tenants/${tenantId}/tokens`, { body: { name: 't2', scopes: ['usage:read'] } }),
  revokeToken: () => ask(`/tenants/${tenantId}/tokens/${tokenId}`, { method: 'DELETE' }),
  createOperatorToken: () => ask('/operator-tokens', { body: { name: 'new', scopes: ['read'] } }),
  inviteOperator: () => ask('/operator-invitations', { body: { tenantId } }),
  removeOperator: async () => {
    for (const user of ['staying', 'leaving']) {
      const person = `INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ($1, $1, $2, false)`;
      await services.database.query(person, [user, `${user}@example.com`]);
      await services.database.query('INSERT INTO console.operator (user_id) VALUES ($1)', [user]);
    }
    return ask('/console-operators/remove', { body: { email: 'leaving@example.com' } });
  },
  createPasswordLink: async () => {
    await services.database.query(
      `INSERT INTO console."account" ("id", "accountId", "providerId", "userId", "password", "updatedAt")
       VALUES ('staying', 'staying', 'credential', 'staying', 'x', now())`,
    );
    return ask('/password-links', { body: { email: 'staying@example.com' } });
  },
  revokeOperatorToken: () => ask(`/operator-tokens/${operatorId}`, { method: 'DELETE' }),
  closeMonth: () => ask('/invoices/close', { body: { period: '2026-10', tenantId } }),
  voidInvoice: () => ask('/invoices/1/void', { body: { reason: 'wrong price' } }),
  drainBackend: () => ask('/backends/drain', { body: { backend: 'simulator:' } }),
  enableBackend: () => ask('/backends/enable', { body: { backend: 'simulator:' } }),
  updateTenant: () => ask(`/tenants/${tenantId}`, { method: 'PATCH', body: { name: 'Acme Ltd' } }),
  startReconcile: () => ask('/reconcile', { method: 'POST' }),
  'management createKey': () =>
    send(`${services.publicUrl}/_api/v1/keys`, { token: managed.token, body: { name: 'by token' } }),
  'management revokeKey': () =>
    send(`${services.publicUrl}/_api/v1/keys/${managedKey}`, { token: managed.token, method: 'DELETE' }),
  closeTenant: () => ask(`/tenants/${managed.tenantId}/close`, { method: 'POST' }),
  eraseTenant: () => ask(`/tenants/${managed.tenantId}/erase`, { method: 'POST' }),
};

/** Not GET, and changes nothing. */
const READS = ['checkConfig', 'compareJournal'];

describe('the audit log', () => {
  it('has exactly one row for each write of the operator and the management API', async () => {
    const writes = [
      ...routesOf(OPERATOR_ROUTES).map((route) => ({ ...route, api: '' })),
      ...routesOf(MANAGEMENT_ROUTES).map((route) => ({ ...route, api: 'management ' })),
    ].flatMap(({ method, operation, api }) =>
      method === 'get' || operation === null || READS.includes(operation.id)
        ? []
        : [{ name: api + operation.id, change: operation.change }],
    );
    const actions = new Map<string, AuditAction | undefined>(writes.map(({ name, change }) => [name, change]));
    expect(Object.keys(WRITES).sort()).toEqual([...actions.keys()].sort());
    for (const [name, write] of Object.entries(WRITES)) {
      const [newest] = await rows();
      const answer = await write();
      expect([name, answer.status < 300]).toEqual([name, true]);
      const requestId = answer.headers.get('x-request-id')!;
      const made = (await rows()).filter(({ id }) => id > newest!.id);
      expect([name, made]).toEqual([name, [expect.objectContaining({ action: actions.get(name) })]]);
      const [{ by, at }] = made as [AuditRow];
      const author = name.startsWith('management')
        ? { kind: 'token', id: managed.tokenId, name: null }
        : { kind: 'secret', id: null, name: null };
      expect([name, by]).toEqual([name, { ...author, address: '127.0.0.1', requestId }]);
      expect(Date.parse(at)).toBeLessThanOrEqual(Date.now());
    }
  });

  it('has no row for a read, a refused write, a dry run, or a repeat that changes nothing', async () => {
    const [newest] = await rows();
    await ask(`/tenants/${tenantId}`);
    await ask('/tenants', { body: {} });
    await ask(`/tenants/${tenantId}/repair`, { body: { dryRun: true } });
    await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1_000, ref: 'seed' } });
    await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1, ref: 'seed' } });
    await ask(`/tenants/${tenantId}/resume`, { method: 'POST' });
    await ask(`/tenants/${tenantId}/budget`, { method: 'PUT', body: { monthlyBudgetCents: 10_000 } });
    await ask(`/tenants/${tenantId}/keys/${keyId}`, { method: 'DELETE' });
    await ask(`/operator-tokens/${operatorId}`, { method: 'DELETE' });
    await ask('/invoices/1/void', { body: { reason: 'wrong price' } });
    expect((await rows())[0]).toEqual(newest);
  });

  it('names the operator token of a change, with the fields before and after it', async () => {
    const { id, token } = (
      await ask('/operator-tokens', { body: { name: 'anna', scopes: ['tenants', 'keys', 'credit'] } })
    ).json.data;
    const headers = { 'x-request-id': 'mine-1' };
    await ask(`/tenants/${tenantId}/suspend`, { method: 'POST', token, headers });
    expect(await rows('&author=anna')).toEqual([
      {
        id: expect.stringMatching(/^aud_/),
        at: expect.any(String),
        by: { kind: 'operator', id, name: 'anna', address: '127.0.0.1', requestId: 'mine-1' },
        action: 'tenant.suspend',
        tenantId,
        target: null,
        before: { status: 'active' },
        after: { status: 'suspended' },
      },
    ]);
    await ask(`/tenants/${tenantId}/credit`, { token, body: { amountCents: 7, ref: 'seven' } });
    const [credit] = await rows(`&author=${id}&action=credit.add`);
    expect(credit!.after!['balanceCents']).toBe((credit!.before!['balanceCents'] as number) + 7);
    expect(credit!.after).toMatchObject({ amountCents: 7, ref: 'seven', source: 'manual' });
  });

  it('never has the value or the hash of a credential', async () => {
    const values: string[] = [];
    for (const [path, field, body] of [
      [`/tenants/${tenantId}/keys`, 'key', { name: 's' }],
      [`/tenants/${tenantId}/tokens`, 'token', { name: 's', scopes: ['usage:read'] }],
      ['/operator-tokens', 'token', { name: 's', scopes: ['read'] }],
    ] as const)
      values.push((await ask(path, { body })).json.data[field]);
    const log = JSON.stringify(await rows());
    for (const value of values) expect(log).not.toContain(value.slice(8, -6));
    expect(log).not.toMatch(/[0-9a-f]{64}/);
  });

  it('is filtered, shows nothing of other tenants then, and pages through the logs of all services', async () => {
    const all = await rows();
    expect(new Set(all.map(({ action }) => action.split('.')[0])).size).toBeGreaterThan(5);
    const of = await rows(`&tenantId=${tenantId}`);
    expect(of).toEqual(all.filter((row) => row.tenantId === tenantId));
    expect(await rows(`&target=${keyId}`)).toEqual(all.filter((row) => row.target === keyId));
    const [middle] = all.slice(5);
    expect(await rows(`&from=${middle!.at}`)).toEqual(all.filter((row) => row.at >= middle!.at));
    expect(await rows(`&to=${middle!.at}`)).toEqual(all.filter((row) => row.at < middle!.at));
    expect(await rows(`&requestId=mine-1`)).toHaveLength(1);
    const paged: AuditRow[] = [];
    for (let after: string | null = ''; after !== null;) {
      const page: { data: AuditRow[]; nextCursor: string | null } = (
        await ask(`/audit?limit=3${after && `&after=${after}`}`)
      ).json;
      paged.push(...page.data);
      after = page.nextCursor;
    }
    expect(paged).toEqual(all);
    for (const query of ['limit=0', 'limit=201', 'after=x', 'action=all', 'from=x', 'tenantId=x', 'author='])
      expect((await ask(`/audit?${query}`)).json.error?.code).toBe('invalid_parameter');
  });

  it('is exported as CSV, all rows of the filter', async () => {
    const log = await rows(`&tenantId=${tenantId}`);
    const { headers, text } = await ask(`/audit/export?tenantId=${tenantId}`);
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [head, ...lines] = text.split('\r\n');
    expect(head).toBe(
      'id,at,author_kind,author_id,author_name,address,request_id,action,tenant_id,target,before,after',
    );
    expect(lines.slice(0, -1).map((line) => line.split(',', 2))).toEqual(log.map(({ id, at }) => [id, at]));
    expect(text).toContain('"{""status"":""suspended""}"');
    expect((await ask('/audit/export?action=all')).json.error.code).toBe('invalid_parameter');
  });

  it.each(['auth', 'billing'])('of %s cannot be changed or emptied, not even by its owner', async (schema) => {
    for (const change of ['UPDATE audit_log SET target = null', 'DELETE FROM audit_log', 'TRUNCATE audit_log'])
      await expect(services.database.query(change.replace('audit_log', `${schema}.audit_log`))).rejects.toThrow(
        /append-only/,
      );
  });
});
