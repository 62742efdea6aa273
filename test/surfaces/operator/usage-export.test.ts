import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { openBillingDatabase } from '../../../apps/billing/src/database';
import { Charges } from '../../../apps/billing/src/reconcile/charges';
import { RetiredMonths } from '../../../apps/billing/src/reconcile/retired-months';
import { openMeteringDatabase } from '../../../apps/metering/src/database';
import { Retention } from '../../../apps/metering/src/retain/retention';
import { eventOf, MONTH, nanosOf, REQUESTS, TOTAL, useExportedUsage } from './exported-usage';

const { services, ask, exported, tollgate, owners } = useExportedUsage();
/** A month that ended long ago. */
const OLD = 'from=2025-03-01&to=2025-04-01';
/** As many months as leave out that month alone, whatever the day. */
const keptMonths = (now = new Date()) => (now.getUTCFullYear() - 2025) * 12 + now.getUTCMonth() - 3;
const rowsOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('the usage of a tenant', () => {
  const usage = async (groupBy: string, of = owners[0]!.tenantId) =>
    (await ask(`/tenants/${of}/usage?from=2026-10-15&to=2026-11-01&groupBy=${groupBy}`)).json.data;

  it('has the exact cost, errors, cached and reasoning tokens, by owner, tag and backend', async () => {
    const all = {
      ...{ requests: REQUESTS, failed: 1, clientClosed: 0, promptTokens: 10 * REQUESTS, cachedTokens: 3 * REQUESTS },
      ...{ completionTokens: 5 * REQUESTS, reasoningTokens: 2 * REQUESTS, totalTokens: 15 * REQUESTS },
      ...{ costNanos: String(TOTAL), costCents: Number((TOTAL + 5_000_000n) / 10_000_000n) },
    };
    const byOwner = await usage('owner');
    expect(byOwner).toMatchObject({ totals: all, groups: [{ owner: 'anna', ...all }], currency: 'USD' });
    expect(Object.keys(byOwner.groups[0])).not.toContain('key');
    const byTag = await usage('tag,day');
    expect(byTag.groups.map(({ day, tag }: { day: string; tag: string }) => [day, tag])).toEqual(
      ['2026-10-29', '2026-10-30', '2026-10-31'].flatMap((day) => [
        [day, 'batch'],
        [day, 'team:search'],
      ]),
    );
    const { groups } = await usage('backend,owner');
    expect(groups).toMatchObject([
      { backend: 'http://gpu-0/v1', owner: 'anna', requests: REQUESTS / 2 },
      { backend: 'http://gpu-1/v1', owner: 'anna', requests: REQUESTS / 2 },
    ]);
    expect((await usage('owner', (await services.tenant()).tenantId)).groups).toEqual([]);
  });

  it('is shown by the command in the same groups', async () => {
    const range = ['--from', '2026-10-15', '--to', '2026-11-01'];
    const { stdout } = await tollgate('usage', owners[0]!.tenantId, ...range, '--group-by', 'owner,backend');
    expect(stdout).toMatch(/^http:\/\/gpu-0\/v1 anna +30 /m);
    const unknown = await tollgate('usage', owners[0]!.tenantId, '--group-by', 'team');
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('There is no group "team"')]);
  });
});

describe('the export of usage', () => {
  it('has each request of all tenants once, with the names, owner and tags of its key', async () => {
    const answer = await ask(`/usage/export?${MONTH}&format=ndjson`);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    const rows = rowsOf(answer.text);
    expect(rows).toHaveLength(2 * REQUESTS);
    expect(new Set(rows.map(({ requestId }) => requestId)).size).toBe(2 * REQUESTS);
    for (const { tenantId, keyId } of owners) {
      const own = rows.filter((row) => row.tenantId === tenantId);
      expect(own.reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n)).toBe(TOTAL);
      expect(own[1]).toEqual({
        ...{ from: own[1].to, to: expect.any(String), requestId: expect.stringMatching(/^req_/), tenantId, keyId },
        ...{ tenantName: expect.any(String), externalId: expect.stringMatching(/^crm-\d$/), keyName: 'prod' },
        ...{ owner: 'anna', tags: ['batch', 'team:search'], model: 'sim-small', kind: 'chat', outcome: 'complete' },
        ...{ backend: 'http://gpu-1/v1', requests: 1, failed: 0, clientClosed: 0, estimated: 0 },
        ...{ promptTokens: 10, cachedTokens: 3, completionTokens: 5, reasoningTokens: 2 },
        ...{ costNanos: String(nanosOf(1)), currency: 'USD' },
      });
    }
  });

  it('sums hours and days, whose sums are those of the requests, and shows one tenant alone', async () => {
    const { tenantId } = owners[1]!;
    for (const [step, rows] of [
      ['hour', REQUESTS],
      ['day', 3],
    ] as const) {
      const sums = rowsOf(await exported(`${MONTH}&format=ndjson&step=${step}&tenantId=${tenantId}`));
      expect(sums).toHaveLength(rows);
      expect(new Set(sums.map((row) => row.tenantId))).toEqual(new Set([tenantId]));
      expect(sums.reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n)).toBe(TOTAL);
      expect(sums.reduce((sum, { requests }) => sum + requests, 0)).toBe(REQUESTS);
      expect(sums.reduce((sum, { failed }) => sum + failed, 0)).toBe(1);
      expect(rowsOf(await exported(`${MONTH}&format=ndjson&step=${step}`))).toHaveLength(2 * rows);
    }
    const day = rowsOf(await exported(`${MONTH}&format=ndjson&step=day&tenantId=${tenantId}`)).at(-1);
    expect([day.from, day.to, day.requests]).toEqual(['2026-10-31T00:00:00.000Z', '2026-11-01T00:00:00.000Z', 24]);
  });

  it('is CSV that a spreadsheet does not compute, with one head', async () => {
    const answer = await ask(`/usage/export?${MONTH}&tenantId=${owners[0]!.tenantId}`);
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [head, first, ...rest] = answer.text.split('\r\n');
    expect(head).toMatch(/^from,to,request_id,tenant_id,tenant_name,external_id,key_id,key_name,owner,tags,model,/);
    expect(first).toContain(`,"'=Acme, ""Ltd""",crm-0,`);
    expect([rest.length, rest.at(-1)]).toEqual([REQUESTS, '']);
  });

  it('has the columns of FOCUS, with exact costs and the month of the charge', async () => {
    const query = `${MONTH}&format=focus&step=hour&provider=Acme%20AI&tenantId=${owners[1]!.tenantId}`;
    const [head, ...lines] = (await exported(query)).trim().split('\r\n');
    const columns = head!.split(',');
    const at = (line: string, name: string) => line.split(',')[columns.indexOf(name)];
    const last = lines.at(-1)!;
    expect(Object.fromEntries(columns.slice(0, 8).map((name) => [name, at(last, name)]))).toEqual({
      ...{ BilledCost: '0.060000007', BillingAccountId: owners[1]!.tenantId, BillingAccountName: 'Widgets' },
      ...{ BillingAccountType: 'Tenant', BillingCurrency: 'USD', ChargeCategory: 'Usage' },
      ...{ BillingPeriodStart: '2026-10-01T00:00:00Z', BillingPeriodEnd: '2026-11-01T00:00:00Z' },
    });
    expect([at(last, 'ProviderName'), at(last, 'ConsumedQuantity')]).toEqual(['Acme AI', '15']);
    expect(last).toContain('"{""batch"":true,""team"":""search"",""owner"":""anna""}"');
    const sum = lines.reduce((nanos, line) => nanos + BigInt(at(line, 'BilledCost')!.replace('.', '')), 0n);
    expect(sum).toBe(TOTAL);
  });

  it('writes the times of FOCUS in whole seconds, and no charge takes no time', async () => {
    const query = `${MONTH}&format=focus&tenantId=${owners[1]!.tenantId}`;
    for (const step of ['request', 'hour', 'day']) {
      const [head, ...lines] = (await exported(`${query}&step=${step}`)).trim().split('\r\n');
      const columns = head!.split(',');
      for (const line of lines) {
        const [start, end] = ['ChargePeriodStart', 'ChargePeriodEnd'].map(
          (name) => line.split(',')[columns.indexOf(name)]!,
        );
        for (const time of [start, end]) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        expect(Date.parse(start!)).toBeLessThan(Date.parse(end!));
      }
      expect(lines.length).toBeGreaterThan(0);
    }
  });

  it('refuses an unknown tenant, step, form or range, in the envelope', async () => {
    expect((await ask(`/usage/export?tenantId=${newId('ten')}`)).json.error.code).toBe('not_found');
    for (const query of ['step=week', 'format=xml', 'from=x', 'from=2026-11-01&to=2026-10-01', 'tenantId=x', 'keyId=x'])
      expect((await ask(`/usage/export?${query}`)).json.error.code).toBe('invalid_parameter');
    const future = await ask('/usage/export?from=2190-01-01');
    expect([future.status, future.json.error]).toEqual([
      400,
      expect.objectContaining({
        message: expect.stringMatching(/^from must be before to\. .* to is the current time\.$/),
      }),
    ]);
    expect((await ask('/usage/export', { token: null })).status).toBe(401);
  });

  it('is printed by the command, and filtered by model and key like the usage of a tenant', async () => {
    const { tenantId, keyId } = owners[0]!;
    const range = ['--from', '2026-10-01', '--to', '2026-11-01'];
    const { code, stdout } = await tollgate('usage', 'export', ...range, '--key', keyId, '--format', 'ndjson');
    expect([code, rowsOf(stdout).length]).toEqual([0, REQUESTS]);
    expect((await tollgate('usage', 'export', ...range, '--step', 'week')).code).toBe(2);
    const requests = async (...filter: string[]) =>
      JSON.parse((await tollgate('usage', tenantId, ...range, ...filter, '--json')).stdout).totals.requests as number;
    expect(await requests('--model', 'sim-small', '--key', keyId)).toBe(REQUESTS);
    expect(await requests('--model', 'other')).toBe(0);
    const none = await tollgate('usage', tenantId, ...range, '--model', 'other', '--key', keyId);
    expect([none.code, none.stderr]).toEqual([
      0,
      expect.stringContaining('No usage in this range matches --model and --key.\n'),
    ]);
    expect(await requests('--key', newId('key'))).toBe(0);
    const wrong = await tollgate('usage', tenantId, '--group-by', 'week');
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('There is no group "week".')]);
  });
});

it('an export without events is empty, and the command says so', async () => {
  const future = ['--from', '2190-01-01', '--to', '2190-02-01'];
  const said = 'tollgate: no events in 2190-01-01 to 2190-02-01';
  for (const [format, head] of [
    ['csv', 1],
    ['focus', 1],
    ['ndjson', 0],
  ] as const) {
    const empty = await tollgate('usage', 'export', ...future, '--format', format);
    expect([empty.code, empty.stderr]).toEqual([0, `${said}\n`]);
    expect(empty.stdout.match(/\n/g) ?? []).toHaveLength(head);
    const answer = await ask(`/usage/export?from=2190-01-01&to=2190-02-01&format=${format}`);
    expect([answer.status, answer.text]).toEqual([200, empty.stdout]);
  }
  const filtered = await tollgate('usage', 'export', ...future, '--step', 'day', '--tenant', owners[0]!.tenantId);
  expect([filtered.code, filtered.stderr]).toEqual([0, `${said} that match the filter\n`]);
  const one = await tollgate('usage', 'export', '--from', '2026-10-31T23:59:59Z', '--to', '2026-11-01');
  expect([one.code, one.stderr, one.stdout.match(/\n/g)]).toEqual([0, '', expect.arrayContaining(['\n', '\n'])]);
});

describe('a month whose usage events are no longer kept', () => {
  let id: string;
  let sums: unknown[];
  const usage = async (groupBy: string) => (await ask(`/tenants/${owners[0]!.tenantId}/usage?${OLD}&${groupBy}`)).json;
  const answers = async () => [
    ...(await Promise.all(['', 'groupBy=owner,day', 'groupBy=tag', 'groupBy=model,key,hour'].map(usage))),
    rowsOf(await exported(`${OLD}&format=ndjson&step=hour`)),
    await exported(`${OLD}&format=focus&step=day`),
  ];

  beforeAll(async () => {
    const event = eventOf(owners[0]!, Date.UTC(2025, 2, 10, 5), 0);
    id = event.id;
    await services.messages.publish('usage-events', [event]);
    await eventually(() => services.messages.request('billing.request.entry', { requestId: id }));
    sums = await answers();
    const { url } = services.database;
    const [metering, billing] = await Promise.all([openMeteringDatabase(url), openBillingDatabase(url)]);
    try {
      const retention = new Retention(metering, keptMonths());
      expect(await retention.round()).toMatchObject({ closed: ['2025-03'], summed: ['2025-03'] });
      expect(await new RetiredMonths(services.messages, new Charges(billing)).confirm()).toEqual(['2025-03']);
      await services.database.query(`UPDATE metering.retired_month SET confirmed_at = now() - interval '25 hours'`);
      expect(await retention.round()).toMatchObject({ dropped: ['2025-03'] });
    } finally {
      await Promise.all([metering.destroy(), billing.destroy()]);
    }
  });

  it('keeps its sums by hour, day, model, key, owner and tag, and its export of hours and days', async () => {
    expect(await answers()).toEqual(sums);
    expect(rowsOf(await exported(`${OLD}&format=ndjson&step=hour`))).toMatchObject([
      { requests: 1, failed: 1, owner: 'anna', costNanos: String(nanosOf(0)) },
    ]);
  });

  it('refuses its requests and backends instead of an empty answer, also in the command', async () => {
    const kept = /Single requests are kept from 2025-04-01T00:00:00.000Z on. 2025-03-01T.* is before that/;
    for (const path of [`/usage/export?${OLD}`, `/tenants/${owners[0]!.tenantId}/usage?${OLD}&groupBy=backend`]) {
      const { status, json } = await ask(path);
      expect([status, json.error]).toEqual([
        400,
        expect.objectContaining({ code: 'invalid_parameter', message: expect.stringMatching(kept) }),
      ]);
    }
    const range = ['--from', '2025-03-01', '--to', '2025-04-01'];
    const refused = await tollgate('usage', 'export', ...range);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([2, '', expect.stringMatching(kept)]);
    expect((await tollgate('usage', 'export', ...range, '--step', 'day')).stdout).toContain('sim-small');
  });

  it('has the charge and the key of a request, whose explanation says that the event is gone', async () => {
    const { code, stdout } = await tollgate('explain', id);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Event: +no longer kept; what was charged stays$/m);
    expect(stdout).toMatch(new RegExp(`^Key: +${owners[0]!.keyId} \\(prod\\)$`, 'm'));
    expect(stdout).toMatch(/^Charge: .*billed in /m);
  });
});
