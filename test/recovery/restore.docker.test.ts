import { NANOS_PER_CENT, type Difference } from '@tollgate/contracts';
import { applyTopics } from '@tollgate/messaging';
import { eventually, onceServed } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, useDeployment } from '../services/deployment';
import { operate } from '../services/first-steps';
import type { App, ServiceProcess } from '../services/service-process';
import { ARCHIVING, BackedUpPostgres } from './backed-up-postgres';
import { Deployed, OUTPUT_TOKEN_NANOS, writeConfig, type Answer, type Tenant } from './deployed';

const TIMEOUT = { timeoutMs: 60_000, everyMs: 100 };
const MOMENT = 'before the accident';
const SPENDER_CENTS = 5;
const SPENDER_NANOS = BigInt(SPENDER_CENTS) * NANOS_PER_CENT;
/** The least that a request of these tests can cost: its prompt and one token. */
const LEAST_NANOS = 8n * 50_000n + OUTPUT_TOKEN_NANOS;
/** More than the credit of the spender pays for. */
const MAX_SPENDER_CHATS = 30;
const LATER_TOP_UP = { amountCents: 500, source: 'manual', ref: 'paid after the moment' };

const deployment = useDeployment({ TOLLGATE_CONFIG: writeConfig() }, ARCHIVING);
const { kafka, redis, postgres: server } = deployment;
const postgres = new BackedUpPostgres(server);
const services = {} as Record<Exclude<App, 'console'>, ServiceProcess>;
const gateways: ServiceProcess[] = [];
const deployed = new Deployed(deployment, gateways);

let steady: Tenant;
let spender: Tenant;
let suspended: Tenant;
/** Keys of `steady`: the first revoked, the second issued after the moment. */
let [revoked, issued] = [
  { id: '', key: '' },
  { id: '', key: '' },
];
/** Complete answers by tenant: whole in the books, with a charge that was lost with Kafka, and lost. */
const whole: Record<string, Answer[]> = {};
const chargeLost: Record<string, Answer[]> = {};
const lost: Record<string, Answer[]> = {};
let lostBefore: Answer[];
let heads: { tenantId: string; sequence: number; hash: string }[];
let repaired: string;
let repairedAgain: string;

const nanosOf = (answers: readonly Answer[]) => answers.reduce((sum, { costNanos }) => sum + costNanos, 0n);
const idsOf = (answers: readonly Answer[]) => answers.map(({ id }) => id!).sort();

/** Sends a request that is safe to repeat, and repeats it while a service that is busy makes it a 503. */
const operator = <T>(path: string, method = 'GET', body?: unknown) => onceServed(() => sent<T>(path, method, body));

function sent<T>(path: string, method = 'GET', body?: unknown) {
  const url = `${gateways[0]!.addresses.operatorUrl}/_operator/v1${path}`;
  return call<T>(url, OPERATOR_SECRET, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}

async function start(...apps: (keyof typeof services)[]): Promise<void> {
  await Promise.all(apps.map(async (app) => void (services[app] = await deployment.start(app))));
  if (apps.includes('gateway')) gateways.splice(0, gateways.length, services.gateway);
}

async function chats(tenant: Tenant, count: number): Promise<Answer[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => onceServed(() => deployed.chat(tenant.key))));
  for (const answer of answers) expect(answer).toMatchObject({ status: 200, id: expect.stringMatching(/^req_/) });
  return answers;
}

/** Spends until the credit pays for no request. */
async function spendAll(tenant: Tenant): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let n = 0; n < MAX_SPENDER_CHATS; n++) {
    const answer = await onceServed(() => deployed.chat(tenant.key, { tokens: 20 }));
    if (answer.status === 402) return answers;
    expect(answer).toMatchObject({ status: 200, id: expect.stringMatching(/^req_/) });
    answers.push(answer);
  }
  throw new Error(`${MAX_SPENDER_CHATS} requests were served`);
}

const charged = (tenant: Tenant, answers: readonly Answer[]) =>
  eventually(() => deployed.expectCharged(tenant.id, answers), TIMEOUT);

/** Waits until a new tenant's credit is in force. */
async function tenantWith(cents: number): Promise<Tenant> {
  const tenant = await deployed.newTenant({ cents });
  whole[tenant.id] = await eventually(() => chats(tenant, 1), TIMEOUT);
  return tenant;
}

const recorded = (answers: readonly Answer[]) =>
  eventually(async () => {
    const rows = await postgres.query<{ id: string }>(
      `SELECT id FROM metering.usage_event WHERE id = ANY($1)
         AND NOT EXISTS (SELECT FROM metering.outbox WHERE data ->> 'id' = usage_event.id) ORDER BY id`,
      [idsOf(answers)],
    );
    expect(rows.map(({ id }) => id)).toEqual(idsOf(answers));
  }, TIMEOUT);

/** Until the moment. Charges and a suspension are on their way to billing then, and two events to metering. */
async function beforeTheMoment(): Promise<void> {
  [steady, spender, suspended] = [await tenantWith(1_000), await tenantWith(SPENDER_CENTS), await tenantWith(100)];
  revoked = await deployed.issueKey(steady.id);
  whole[steady.id]!.push(...(await chats(steady, 3)));
  for (const tenant of [steady, spender, suspended]) await charged(tenant, whole[tenant.id]!);

  services.billing.child.kill('SIGSTOP');
  chargeLost[steady.id] = await chats(steady, 3);
  chargeLost[spender.id] = await chats(spender, 1);
  await recorded([...chargeLost[steady.id]!, ...chargeLost[spender.id]!]);
  // Billing does not answer. The suspension is committed all the same.
  expect((await sent(`/tenants/${suspended.id}/suspend`, 'POST')).status).toBe(503);
  await eventually(async () => expect(await postgres.query('SELECT FROM auth.outbox')).toEqual([]), TIMEOUT);

  services.metering.child.kill('SIGSTOP');
  lostBefore = await chats(steady, 2);
  await postgres.nameMoment(MOMENT);
  services.billing.child.kill('SIGCONT');
  services.metering.child.kill('SIGCONT');
}

async function afterTheMoment(): Promise<void> {
  lost[steady.id] = [...lostBefore, ...(await chats(steady, 4))];
  lost[spender.id] = await spendAll(spender);
  await eventually(() => operate(gateways[0]!, `/tenants/${steady.id}/credit`, LATER_TOP_UP), TIMEOUT);
  issued = await deployed.issueKey(steady.id);
  expect((await operator(`/tenants/${steady.id}/keys/${revoked.id}`, 'DELETE')).status).toBe(204);
  for (const { id } of [steady, spender])
    await charged({ id } as Tenant, [...whole[id]!, ...chargeLost[id]!, ...lost[id]!]);
  await eventually(async () => {
    const { body } = await operator<{ data: typeof heads }>('/journal/heads');
    heads = body.data;
    expect(heads.map(({ tenantId }) => tenantId).sort()).toEqual([steady.id, spender.id, suspended.id].sort());
    // At the moment it had spent less than a cent, so it had no entry but its top-up.
    expect(Number(heads.find(({ tenantId }) => tenantId === spender.id)!.sequence)).toBeGreaterThan(1);
  }, TIMEOUT);
  await postgres.archived();
}

/** Everything ends at once, in the middle of a stream. Then the stores are what they are after a restore. */
async function loseEverything(): Promise<void> {
  const stream = await deployed.open(steady.key, { stream: true, tokens: 1_000, tokensPerSecond: 20 });
  await stream.body!.getReader().read();
  await Promise.all([...deployment.running].map((service) => service.end('SIGKILL')));
  await Promise.all([
    ...[redis, kafka].map(async (store) => {
      await store.remove();
      await store.create();
    }),
    postgres.loseAndRestore(MOMENT),
  ]);
}

// In several hooks, each with a time limit of its own.
beforeAll(() => start('auth', 'metering', 'billing'));
beforeAll(() => start('gateway'));
beforeAll(async () => {
  await postgres.backUp();
  await beforeTheMoment();
});
beforeAll(afterTheMoment);
beforeAll(loseEverything);
beforeAll(async () => {
  repaired = await postgres.repair();
  repairedAgain = await postgres.repair();
  await applyTopics({ brokers: kafka.brokers, clientId: 'test' });
  await start('auth', 'metering', 'billing');
});
beforeAll(async () => {
  for (const { id } of [steady, spender]) await charged({ id } as Tenant, [...whole[id]!, ...chargeLost[id]!]);
  await start('gateway');
});

describe('PostgreSQL restored to a moment, with an empty Redis and an empty Kafka', () => {
  it('has each request that metering had recorded by then exactly once, and reconcile agrees', async () => {
    const count = chargeLost[steady.id]!.length + chargeLost[spender.id]!.length;
    expect(repaired).toMatch(
      new RegExp(`charges published again\\D+ ${count}\\s.*statuses published again\\D+ 1\\s`, 's'),
    );
    expect(repairedAgain).toMatch(/charges published again\D+ 0\s/);
    for (const { id } of [steady, spender, suspended])
      await deployed.expectCharged(id, [...whole[id]!, ...(chargeLost[id] ?? [])]);
    await eventually(async () => {
      const { body } = await operator<{ data: object }>('/reconcile', 'POST');
      expect(body.data).toMatchObject({ ok: true, differences: [], pendingHolds: 0, settledHolds: 0 });
    }, TIMEOUT);
  });

  it('knows no hold of a former request', async () => {
    const keys = (await deployed.redisCli('--scan', '--pattern', 'tga:{ten_*')).match(/tga:\S+/g) ?? [];
    expect(keys.filter((key) => /:(pending|settled|unconfirmed)$/.test(key))).toEqual([]);
  });

  it('has lost what came later: kept heads of the journal name the tenants', async () => {
    for (const id of idsOf([...lost[steady.id]!, ...lost[spender.id]!]))
      expect((await operator(`/requests/${id}`)).status).toBe(404);
    const { body } = await operator<{ data: { differences: Difference[] } }>('/journal/compare', 'POST', { heads });
    expect(body.data.differences.map(({ tenantId }) => tenantId).sort()).toEqual([steady.id, spender.id].sort());
  });

  it('keeps a suspension that was on its way to billing', async () => {
    await eventually(async () => {
      const { status, code } = await deployed.chat(suspended.key);
      expect([status, code]).toEqual([402, 'tenant_suspended']);
    }, TIMEOUT);
  });

  it('lets a tenant spend again what it spent later, and nothing beyond', async () => {
    const before = [...whole[spender.id]!, ...chargeLost[spender.id]!];
    const again = await spendAll(spender);
    const left = SPENDER_NANOS - nanosOf([...before, ...again]);
    expect([left >= 0n, left < LEAST_NANOS]).toEqual([true, true]);
    await charged(spender, [...before, ...again]);
    expect(nanosOf([...before, ...lost[spender.id]!, ...again]) - SPENDER_NANOS).toBe(
      nanosOf(lost[spender.id]!) - left,
    );
  });

  it('books a later top-up once when it is entered again with its ref', async () => {
    const balance = async () => {
      const { body } = await operator<{ data: { balanceCents: number } }>(`/tenants/${steady.id}/credit`);
      return body.data.balanceCents;
    };
    const before = await balance();
    for (let repeat = 0; repeat < 2; repeat++)
      expect((await operator(`/tenants/${steady.id}/credit`, 'POST', LATER_TOP_UP)).status).toBeLessThan(300);
    expect(await balance()).toBe(before + LATER_TOP_UP.amountCents);
  });

  it('refuses a later key, and accepts a key that was revoked later until it is revoked again', async () => {
    const statusOf = async (key: string) => (await onceServed(() => deployed.chat(key))).status;
    expect(await statusOf(issued.key)).toBe(401);
    expect(await statusOf(revoked.key)).toBe(200);
    expect((await operator(`/tenants/${steady.id}/keys/${revoked.id}`, 'DELETE')).status).toBe(204);
    await eventually(async () => expect(await statusOf(revoked.key)).toBe(401), TIMEOUT);
  });
});
