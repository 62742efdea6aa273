import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import type { Asked } from '../ask';
import { Documented } from './documented';
import { OPERATOR_SECRET, useServices } from '../services';

const AT = '/_operator/v1';
const OCTOBER_END = '2026-10-31T23:59:59.999Z';
// Months are not closed automatically, because the test uses a past one.
const services = useServices({ invoiceCloseDelayMs: 20 * 365 * 24 * 3_600_000 });
let documented: Documented;
beforeAll(async () => {
  documented = await Documented.read(services.operatorUrl, `${AT}/openapi.yaml`);
});

const asked = new Set<string>();
async function ask(method: string, path: string, more: Asked = {}, ids: Record<string, string> = {}) {
  const answer = await documented.ask(method, AT + path, { token: OPERATOR_SECRET, ...more }, ids);
  if (answer.status < 300) asked.add(`${method} ${AT}${path}`);
  return answer;
}

/** The event of a request in October 2026 that costs 33 cents, as the gateway sends it. */
async function used(tenantId: string, keyId: string): Promise<string> {
  const requestNanos = String(33n * 10_000_000n);
  const event = {
    id: newId('req', Date.parse(OCTOBER_END) - 1_000),
    tenantId,
    keyId,
    model: 'sim-small',
    kind: 'chat' as const,
    stream: false,
    callerRequestId: 'my-own-id',
    price: { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0', requestNanos },
    startedAt: OCTOBER_END,
    promptTokens: 10,
    cachedTokens: 0,
    completionTokens: 5,
    costNanos: requestNanos,
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete' as const,
    endedAt: OCTOBER_END,
  };
  await services.messages.publish('usage-events', [event]);
  return event.id;
}

it('real answers of every operation match the document', async () => {
  const tenantId = (await ask('post', '/tenants', { body: { name: 'Acme' } })).json.data.id;
  const of = { tenantId };
  await ask('get', '/tenants', {}, { query: '?limit=1' });
  for (const path of ['suspend', 'resume']) await ask('post', `/tenants/{tenantId}/${path}`, {}, of);
  await ask('patch', '/tenants/{tenantId}', { body: { externalId: 'crm-1', plan: 'default' } }, of);
  await ask('get', '/tenants/{tenantId}', {}, of);
  const ended = { tenantId: (await services.tenant()).tenantId };
  for (const path of ['close', 'erase']) await ask('post', `/tenants/{tenantId}/${path}`, {}, ended);

  await ask('get', '/backends');
  for (const path of ['drain', 'enable']) await ask('post', `/backends/${path}`, { body: { backend: 'simulator:' } });

  const credit = '/tenants/{tenantId}/credit';
  await ask('post', credit, { body: { amountCents: 1_000, ref: 'first' } }, of);
  await ask('post', `${credit}/adjust`, { body: { amountCents: 5, ref: 'a', reason: 'goodwill' } }, of);
  await eventually(() => ask('post', `${credit}/refund`, { body: { amountCents: 5, ref: 'r' } }, of));

  const key = (await ask('post', '/tenants/{tenantId}/keys', { body: { name: 'k' } }, of)).json.data;
  const change = { body: { owner: 'team-search', tags: ['batch'], expiresAt: null } };
  await ask('patch', '/tenants/{tenantId}/keys/{id}', change, { ...of, id: key.id });
  await ask('post', '/tenants/{tenantId}/keys/{id}/rotate', { body: {} }, { ...of, id: key.id });
  for (const dryRun of [true, false]) {
    const list = { keys: [{ name: 'k', owner: null }, { name: 'new' }], revokeOthers: true, dryRun };
    await ask('post', '/tenants/{tenantId}/keys/apply', { body: list }, of);
  }
  await ask('get', '/tenants/{tenantId}/keys', {}, of);
  const token = (await ask('post', '/tenants/{tenantId}/tokens', { body: { name: 't', scopes: ['usage:read'] } }, of))
    .json.data;
  await ask('get', '/tenants/{tenantId}/tokens', {}, of);

  const body = { monthlyBudgetCents: 0, thresholdsPercent: [50, 90] };
  for (const path of ['/tenants/{tenantId}/budget', '/tenants/{tenantId}/keys/{id}/budget']) {
    expect((await ask('put', path, { body }, { ...of, id: key.id })).json.data.events).toHaveLength(2);
    await ask('get', path, {}, { ...of, id: key.id });
  }
  await ask('get', '/tenants/{tenantId}/budgets', {}, of);
  await ask('post', '/tenants/{tenantId}/repair', { body: { dryRun: true } }, of);

  const requestId = await used(tenantId, key.id);
  const entryId = await eventually(async () => {
    const { data } = (await ask('get', credit, {}, of)).json;
    return data.entries.find((entry: { type: string }) => entry.type === 'usage')!.id as string;
  });
  await ask('get', '/tenants/{tenantId}/usage', {}, { ...of, query: '?from=2026-10-01&groupBy=model,key,day' });
  expect((await ask('get', '/entries/{entryId}/requests', {}, { entryId })).json.data).toHaveLength(1);
  await ask('post', '/invoices/close', { body: { period: '2026-10', tenantId } });
  await ask('get', '/requests/{requestId}', {}, { requestId });
  await ask('get', '/explain/requests/{name}', {}, { name: 'my-own-id', query: `?tenantId=${tenantId}` });
  await ask('get', '/explain/keys/{keyId}', {}, { keyId: key.id });
  expect((await ask('get', '/requests', {}, { query: '?callerRequestId=my-own-id' })).json.data).toHaveLength(1);
  const [invoice] = (await ask('get', '/invoices', {}, { query: `?tenantId=${tenantId}` })).json.data;
  await ask(
    'post',
    '/invoices/{accountingNumber}/void',
    { body: { reason: 'test' } },
    { accountingNumber: String(invoice.accountingNumber) },
  );

  const plans = [{ id: 'default', profiles: [{ id: 'default' }] }];
  await ask('post', '/config/check', { body: { currency: 'USD', plans } });
  await ask('post', '/reconcile');
  const { id } = await services.messages.request('billing.reconcile.start', {});
  await eventually(async () =>
    expect((await ask('get', '/reconcile/{id}', {}, { id })).json.data).toMatchObject({ state: 'done' }),
  );

  const heads = (await ask('get', '/journal/heads', {}, { query: '?limit=1' })).json.data;
  expect(heads).toMatchObject([{ tenantId, sequence: 5 }]);
  expect((await ask('post', '/journal/compare', { body: { heads } })).json.data.differences).toEqual([]);

  await services.database.query(`
    INSERT INTO metering.engine_hour
      VALUES (date_trunc('hour', now()) - interval '2 hours', 'http://gpu/metrics', '{http://gpu/v1}', true,
              NULL, NULL, 1, 2, 0)`);
  expect((await ask('get', '/reconcile/backends', {}, { query: '?hours=3' })).json.data).toHaveLength(1);

  expect((await ask('get', '/audit', {}, { query: `?tenantId=${tenantId}&from=2026-11-01` })).json.data).not.toEqual(
    [],
  );
  await ask('get', '/audit/export');
  await ask('get', '/usage/export', {}, { query: '?from=2026-10-01&step=day&format=focus' });
  const operator = (await ask('post', '/operator-tokens', { body: { name: 'o', scopes: ['read'] } })).json.data;
  await ask('get', '/operator-tokens', { token: operator.token });
  await ask('delete', '/operator-tokens/{id}', {}, { id: operator.id });
  await ask('post', '/operator-invitations', { body: { tenantId } });
  for (const id of ['staying', 'leaving']) {
    const person = `INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ($1, $1, $2, false)`;
    await services.database.query(person, [id, `${id}@example.com`]);
    await services.database.query('INSERT INTO console.operator (user_id) VALUES ($1)', [id]);
  }
  const account = `INSERT INTO console."account" ("id", "accountId", "providerId", "userId", "password", "updatedAt")
    VALUES ('staying', 'staying', 'credential', 'staying', 'x', now())`;
  await services.database.query(account);
  await ask('post', '/password-links', { body: { email: 'staying@example.com' } });
  await ask('post', '/console-operators/remove', { body: { email: 'leaving@example.com' } });

  await ask('delete', '/tenants/{tenantId}/keys/{id}', {}, { ...of, id: key.id });
  await ask('delete', '/tenants/{tenantId}/tokens/{id}', {}, { ...of, id: token.id });

  const all = Object.entries(documented.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  expect([...asked].sort()).toEqual(all.sort());
});

it('a failed run of reconcile is an answer with its reason, so that nobody asks for its end for ever', async () => {
  const failed = { id: newId('rec'), reason: 'the database was away' };
  const dead = { id: newId('rec'), reason: 'The process of this run has ended: start another run.' };
  for (const [id, state, reason] of [
    [failed.id, 'failed', failed.reason],
    [dead.id, 'running', null],
  ])
    await services.database.query(
      `INSERT INTO billing.reconcile_run (id, state, progress, reason, beat_at)
       VALUES ($1, $2, '{"events":1,"tenants":1,"differenceCount":0}', $3, now() - interval '1 minute')`,
      [id, state, reason],
    );
  for (const { id, reason } of [failed, dead]) {
    const { status, headers, json } = await ask('get', '/reconcile/{id}', {}, { id });
    expect([status, headers.get('retry-after'), json.data]).toEqual([
      ...[200, null],
      { id, startedAt: expect.any(String), state: 'failed', reason },
    ]);
  }
});

it('refusals match the document', async () => {
  const { tenantId } = await services.tenant();
  const of = { tenantId };
  const { tenantId: ended } = await services.tenant();
  await services.messages.request('auth.tenants.close', { tenantId: ended });
  const refused = async (status: number, ...[method, path, more, ids]: Parameters<typeof ask>) =>
    expect((await ask(method, path, more, ids)).status).toBe(status);
  await refused(401, 'get', '/tenants', { token: null });
  await refused(401, 'get', '/tenants', { token: 'wrong' });
  await refused(400, 'get', '/tenants', {}, { query: '?limit=0' });
  await refused(400, 'post', '/tenants', { body: {} });
  await refused(415, 'post', '/tenants', { text: 'x', headers: { 'content-type': 'text/plain' } });
  await refused(409, 'patch', '/tenants/{tenantId}', { body: { name: 'x' } }, { tenantId: ended });
  await refused(409, 'post', '/tenants/{tenantId}/erase', {}, of);
  for (const keys of [[], [{ name: 'a' }, { name: 'b', tags: 'x' }], [{ name: 1 }], [{}]])
    await refused(400, 'post', '/tenants/{tenantId}/keys/apply', { body: { keys } }, of);
  const nobody = { ...of, id: newId('key') };
  await refused(404, 'post', '/tenants/{tenantId}/keys/{id}/rotate', { body: {} }, nobody);
  await refused(400, 'post', '/tenants/{tenantId}/keys/{id}/rotate', { body: { graceSeconds: -1 } }, nobody);
  await refused(413, 'post', '/tenants', { text: 'x'.repeat(65_537) });
  await refused(404, 'get', '/tenants/{tenantId}/usage', {}, { tenantId: newId('ten') });
  await refused(400, 'post', '/tenants/{tenantId}/credit', { body: { amountCents: 0 } }, of);
  await refused(409, 'post', '/tenants/{tenantId}/credit/refund', { body: { amountCents: 1, ref: 'r' } }, of);
  await refused(400, 'put', '/tenants/{tenantId}/budget', { body: { monthlyBudgetCents: -1 } }, of);
  await refused(400, 'post', '/tenants/{tenantId}/repair', { body: { dryRun: 'no' } }, of);
  await refused(404, 'post', '/tenants/{tenantId}/repair', { body: {} }, { tenantId: newId('ten') });
  await refused(400, 'post', '/invoices/close', { body: { period: '2999-01' } });
  await refused(404, 'get', '/reconcile/{id}', {}, { id: 'x' });
  await refused(404, 'get', '/explain/requests/{name}', {}, { name: newId('req') });
  await refused(404, 'get', '/explain/keys/{keyId}', {}, { keyId: newId('key') });
  await refused(400, 'get', '/explain/keys/{keyId}', {}, { keyId: newId('key'), query: '?tenantId=x' });
  for (const body of [{}, { heads: [] }, { heads: [{ tenantId, sequence: 0, hash: 'x' }] }])
    await refused(400, 'post', '/journal/compare', { body });
  await refused(400, 'get', '/journal/heads', {}, { query: '?limit=201' });
  for (const query of ['?hours=0', '?hours=745', '?before=x'])
    await refused(400, 'get', '/reconcile/backends', {}, { query });
});
