import { newId, type Charge, type TenantUpdate, type UsageEvent } from '@tollgate/contracts';
import { KafkaMessages } from '@tollgate/messaging';
import { eventually } from '@tollgate/testing';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { useDeployment } from '../services/deployment';
import type { ServiceProcess } from '../services/service-process';
import { Deployed, writeConfig, type Answer } from './deployed';
import { charge, balanceUpdate, usageEvent } from './events';

const TIMEOUT = { timeoutMs: 30_000, everyMs: 100 };
const SKEW_MS = 120_000;
/** A stream that takes some time, but far less than the skew. Any other clock than that of Redis would end its hold. */
const STREAM_TOKENS = 60;
const BACKLOG_EVENTS = 10_000;
const BACKLOG_TENANTS = 20;
/** Only proves that the backlog drains. A benchmark measures the speed. */
const BACKLOG_LIMIT_MS = 60_000;

const config = writeConfig();
/** Shifts the `Date` of a process. Its timers are unchanged. */
const SKEW_FILE = join(dirname(config), 'skew.cjs');
writeFileSync(
  SKEW_FILE,
  `const skewMs = Number(process.env.TEST_CLOCK_SKEW_MS);
const Real = Date;
globalThis.Date = class extends Real {
  constructor(...args) { super(...(args.length === 0 ? [Real.now() + skewMs] : args)); }
  static now() { return Real.now() + skewMs; }
};
`,
);
const skewed = (byMs: number) => ({ NODE_OPTIONS: `--require ${SKEW_FILE}`, TEST_CLOCK_SKEW_MS: String(byMs) });

const deployment = useDeployment({ TOLLGATE_CONFIG: config });
let deployed: Deployed;
let gateways: ServiceProcess[];
let consumers: ServiceProcess[];
let messages: KafkaMessages | undefined;

beforeAll(async () => {
  // One after the other, because five at once on two cores start too slowly for Kafka's time limits.
  await deployment.start('auth', skewed(-SKEW_MS));
  consumers = [
    await deployment.start('metering', skewed(SKEW_MS)),
    await deployment.start('billing', skewed(-SKEW_MS)),
  ];
  gateways = [await deployment.start('gateway', skewed(SKEW_MS)), await deployment.start('gateway', skewed(-SKEW_MS))];
  deployed = new Deployed(deployment, gateways);
  const connection = { brokers: deployment.kafka.brokers, clientId: 'test' };
  messages = new KafkaMessages({ connection, identity: deployment.identity });
  await messages.start();
});
afterAll(() => messages?.close());

/** A shuffle that is the same for the same seed. */
function shuffled<T>(list: readonly T[], seed: number): T[] {
  let state = seed;
  const keyed = list.map((one) => [(state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0), one] as const);
  return keyed.sort(([a], [b]) => a - b).map(([, one]) => one);
}

const books = (tenantId: string) =>
  deployed.query<{ id: string; cost: string; period: string }>(
    'SELECT id, cost_nanos::text AS cost, period FROM billing.charge WHERE tenant_id = $1 ORDER BY id',
    [tenantId],
  );

describe('clocks that are two minutes ahead or behind', () => {
  it('lose no hold, charge or answer, and charge nothing twice', async () => {
    const tenant = await deployed.newTenant();
    const answers: Answer[] = [];
    for (const gateway of gateways) {
      await eventually(async () => {
        const answer = await deployed.chat(tenant.key, {}, gateway);
        answers.push(answer);
        expect(answer.status).toBe(200);
      }, TIMEOUT);
    }
    // Metering, whose clock is ahead, sweeps during the requests.
    const streams = await Promise.all(
      gateways.flatMap((gateway) =>
        [true, false].map((stream) =>
          deployed.chat(tenant.key, { stream, tokens: STREAM_TOKENS, tokensPerSecond: 20 }, gateway),
        ),
      ),
    );
    for (const answer of streams) expect(answer).toMatchObject({ status: 200, id: expect.stringMatching(/^req_/) });
    await eventually(() => deployed.expectCharged(tenant.id, [...answers, ...streams]), TIMEOUT);
    // The month of the debit is that of the event's end time, independent of the clocks of metering and billing.
    const months = await deployed.query<{ own: boolean }>(
      `SELECT period = to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM') AS own FROM billing.charge WHERE tenant_id = $1`,
      [tenant.id],
    );
    expect(months.every(({ own }) => own)).toBe(true);
    for (const { addresses } of gateways) {
      const usage = await fetch(`${addresses.publicUrl}/_api/v1/usage?from=2020-01-01&to=2100-01-01`, {
        headers: { authorization: `Bearer ${tenant.token}` },
      });
      expect(usage.status).toBe(200);
      const { data } = (await usage.json()) as { data: { totals: { requests: number } } };
      expect(data.totals.requests).toBe([...answers, ...streams].filter(({ id }) => id).length);
    }
  });
});

describe('repeated and reordered messages', () => {
  it('of usage and of charges make the same books', async () => {
    const orders: ((list: UsageEvent[]) => UsageEvent[])[] = [
      (list) => list,
      (list) => list.toReversed(),
      (list) => shuffled([...list, ...list, ...list], 7),
      (list) => shuffled([...list, ...list], 11),
    ];
    const nowMs = Date.now();
    const shapes = Array.from({ length: 60 }, (_, n) => ({
      // In open months, because a late charge belongs to the running month.
      endedAt: new Date(nowMs - n * 1_000).toISOString(),
      completionTokens: n,
      costNanos: String(400_000n + BigInt(n) * 200_000n),
    }));
    const tenants = orders.map(() => newId('ten'));
    for (const [n, order] of orders.entries()) {
      const events = order(shapes.map((shape) => usageEvent(tenants[n]!, shape)));
      // In several calls, so that repeats are in later batches too. Half of the orders are published as charges.
      for (let from = 0; from < events.length; from += 25) {
        const part = events.slice(from, from + 25);
        if (n % 2 === 0) await messages!.publish('usage-events', part);
        else await messages!.publish('charges', part.map(toCharge));
      }
    }
    const expected = shapes.map(({ costNanos, endedAt }) => `${endedAt.slice(0, 7)} ${costNanos}`).sort();
    for (const tenantId of tenants) {
      await eventually(
        async () =>
          expect((await books(tenantId)).map(({ period, cost }) => `${period} ${cost}`).sort()).toEqual(expected),
        TIMEOUT,
      );
    }
    const sums = await deployed.query<{ gathered: string }>(
      `SELECT DISTINCT (gathered_nanos + carried_nanos)::text AS gathered
       FROM billing.tenant_books WHERE tenant_id = ANY($1)`,
      [tenants],
    );
    expect(sums).toHaveLength(1);
  });

  it('of a tenant update leave the newest status', async () => {
    const tenants = [3, 5].map((seed) => ({ id: newId('ten'), seed }));
    for (const { id: tenantId, seed } of tenants) {
      const all = Array.from({ length: 31 }, (_, n): TenantUpdate => ({
        tenantId,
        version: n + 1,
        status: n % 2 === 0 ? 'suspended' : 'active',
      }));
      for (const one of shuffled([...all, ...all], seed)) await messages!.publish('tenant-news', [one]);
      await eventually(async () => {
        const [row] = await deployed.query<{ version: string; suspended: boolean; told: string }>(
          `SELECT status_version::text AS version, suspended, version::text AS told
           FROM billing.tenant_books WHERE tenant_id = $1`,
          [tenantId],
        );
        expect(row).toMatchObject({ version: '31', suspended: true });
        // The admission store has the status of the books.
        const fields = await deployed.redisCli('HMGET', `tga:{${tenantId}}:credit`, 'version', 'suspended');
        expect(fields.match(/\d+/g)?.slice(-2)).toEqual([row!.told, '1']);
      }, TIMEOUT);
    }
  });

  it('of a balance update leave the newest balance', async () => {
    const tenantId = newId('ten');
    const all = Array.from({ length: 30 }, (_, n) => balanceUpdate(tenantId, n + 1, BigInt(n)));
    for (const one of shuffled([...all, ...all], 3)) await messages!.publish('credit-news', [one]);
    await eventually(async () => {
      const fields = await deployed.redisCli('HMGET', `tga:{${tenantId}}:credit`, 'version', 'balance');
      const found = fields.match(/\d+/g)?.slice(-2);
      // Billing never sent these updates, so its watch may have repaired the tenant by then.
      if (found?.join() !== '30,29')
        expect(await consumers.at(-1)!.metrics()).toMatch(
          /^tollgate_billing_poisoned_tenants_total\{\w+="version"\} [1-9]/m,
        );
    }, TIMEOUT);
  });
});

it('a backlog of 10,000 events drains with right sums after metering and billing were down', async () => {
  await Promise.all(consumers.map((service) => service.end()));
  const tenants = Array.from({ length: BACKLOG_TENANTS }, () => newId('ten'));
  const events = Array.from({ length: BACKLOG_EVENTS }, (_, n) => usageEvent(tenants[n % BACKLOG_TENANTS]!));
  for (let from = 0; from < events.length; from += 1_000)
    await messages!.publish('usage-events', events.slice(from, from + 1_000));
  consumers = await Promise.all((['metering', 'billing'] as const).map((app) => deployment.start(app)));
  const from = performance.now();
  const charged = () =>
    deployed.query<{ tenant_id: string; n: number; nanos: string }>(
      `SELECT tenant_id, count(*)::int AS n, sum(cost_nanos)::text AS nanos
       FROM billing.charge WHERE tenant_id = ANY($1) GROUP BY tenant_id ORDER BY tenant_id`,
      [tenants],
    );
  await eventually(async () => expect((await charged()).reduce((sum, { n }) => sum + n, 0)).toBe(BACKLOG_EVENTS), {
    timeoutMs: BACKLOG_LIMIT_MS,
    everyMs: 50,
  });
  const seconds = (performance.now() - from) / 1_000;
  process.stderr.write(
    `backlog: ${BACKLOG_EVENTS} events in ${seconds.toFixed(1)} s from ready to the last charge, ` +
      `${(BACKLOG_EVENTS / seconds).toFixed()}/s\n`,
  );
  const share = BACKLOG_EVENTS / BACKLOG_TENANTS;
  expect(await charged()).toEqual(
    tenants
      .toSorted()
      .map((tenant_id) => ({ tenant_id, n: share, nanos: String(BigInt(share) * BigInt(events[0]!.costNanos)) })),
  );
});

function toCharge({ id, tenantId, keyId, costNanos, endedAt }: UsageEvent): Charge {
  return charge(tenantId, { id, keyId, costNanos, endedAt });
}
