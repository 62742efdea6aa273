// Every list and chart of the console's backend, as its pages ask them, in the tenant with most of the events.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The largest page. */
const PAGE = 200;

/**
 * @param {{ get: (path: string) => Promise<{ answer: any }> }} operator
 * @param {{ tenantId: string, keyIds: string[] }} tenant
 * @returns {Promise<Record<string, string>>} paths by the name of the call
 */
export async function consoleCalls(operator, { tenantId, keyIds }) {
  const of = (path, query = {}) => {
    const text = new URLSearchParams(query).toString();
    return `/tenants/${tenantId}/${path}${text && `?${text}`}`;
  };
  const answerOf = async (path) => (await operator.get(path)).answer;
  const usage = (days, step, more = {}) => {
    const stepMs = step === 'hour' ? HOUR_MS : DAY_MS;
    const toMs = (Math.floor(Date.now() / stepMs) + 1) * stepMs;
    const [from, to] = [toMs - days * DAY_MS, toMs].map((ms) => new Date(ms).toISOString());
    return of('usage', { from, to, step, ...more });
  };
  const [busy, rare] = [keyIds[0], keyIds.at(-1)];
  const model = 'bench-slow';
  const requests = await answerOf(of('requests'));
  const week = {
    from: new Date(Date.now() - 20 * DAY_MS).toISOString(),
    to: new Date(Date.now() - 13 * DAY_MS).toISOString(),
  };
  const credit = await answerOf(of('credit', { limit: PAGE }));
  const usageEntry = credit.entries.find(({ type }) => type === 'usage');
  const keys = await answerOf(of('keys'));
  const invoices = await answerOf('/operator/invoices');
  const invoice = invoices.data.find((row) => row.tenantId === tenantId);
  const calls = {
    me: '/me',
    sessions: '/sessions',
    overview: of('overview'),
    'usage, 1 day by hour and model': usage(1, 'hour', { by: 'model' }),
    'usage, 7 days by hour and model': usage(7, 'hour', { by: 'model' }),
    'usage, 7 days by hour and key': usage(7, 'hour', { by: 'key' }),
    'usage, 30 days by hour and model': usage(30, 'hour', { by: 'model' }),
    'usage, 30 days by hour and key': usage(30, 'hour', { by: 'key' }),
    'usage, 30 days by hour of one key': usage(30, 'hour', { keyId: busy }),
    'usage, 30 days by hour of one model': usage(30, 'hour', { model }),
    'usage, 30 days by day and model': usage(30, 'day', { by: 'model' }),
    'usage, 30 days by day and key': usage(30, 'day', { by: 'key' }),
    'usage, 30 days by day of one key': usage(30, 'day', { by: 'model', keyId: busy }),
    'usage, 90 days by day and key': usage(90, 'day', { by: 'key' }),
    'requests, newest': of('requests'),
    'requests, newest 200': of('requests', { limit: PAGE }),
    'requests, next page': of('requests', { after: requests.nextCursor }),
    'requests of a week': of('requests', week),
    'requests of a model': of('requests', { model }),
    'requests of a busy key': of('requests', { keyId: busy }),
    'requests of a rare key': of('requests', { keyId: rare }),
    'requests of a rare key and a model': of('requests', { keyId: rare, model }),
    'requests, complete': of('requests', { outcome: 'complete' }),
    'requests, failed': of('requests', { outcome: 'upstream_error' }),
    'requests, failed, of a rare key': of('requests', { outcome: 'expired', keyId: rare }),
    request: of(`requests/${requests.data[0].id}`),
    credit: of('credit'),
    'credit, 200 entries': of('credit', { limit: PAGE }),
    ...(credit.nextCursor !== null && {
      'credit, next page': of('credit', { limit: PAGE, after: credit.nextCursor }),
    }),
    'credit, requests of an entry': of(`credit/${usageEntry.id}`),
    ...(invoice && { invoice: of(`invoices/${invoice.accountingNumber}`) }),
    budgets: of('budgets'),
    keys: of('keys'),
    'keys, 200': of('keys', { limit: PAGE }),
    'keys, next page': of('keys', { limit: PAGE, after: keys.nextCursor }),
    tokens: of('tokens'),
    members: of('members'),
    models: of('models'),
    plan: of('plan'),
    audit: of('audit'),
    'audit, 200 of an action': of('audit', { limit: PAGE, action: 'key.create' }),
    'operator: tenants': '/operator/tenants',
    'operator: tenants, search': '/operator/tenants?search=rowt&limit=200',
    'operator: tenant': `/operator/tenants/${tenantId}`,
    'operator: fleet': '/operator/fleet',
    'operator: invoices': '/operator/invoices?limit=200',
    'operator: configuration': '/operator/configuration',
    'operator: plans': '/operator/plans',
    'operator: audit': '/operator/audit?limit=200',
  };
  return calls;
}
