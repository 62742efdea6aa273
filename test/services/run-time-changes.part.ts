import type { BudgetEvent, Envelope } from '@tollgate/contracts';
import { eventually, inForceAfterMs, onceServed } from '@tollgate/testing';
import { readTopic } from '../../libs/messaging/src/kafka/consume/read-topic';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, type Deployment, type Replicas } from './deployment';
import { chat, newTenant } from './first-steps';
import type { ServiceProcess } from './service-process';

const IN_FORCE_MS = 1_000;
/** Billing or auth, Redis and a gateway: what a change passes. */
const PROCESSES = 3;
const WAIT_MS = 20_000;
const ROUNDS = 5;

/** Runs on two gateways. */
export function runTimeChangesTests(deployment: Deployment, { gateway: gateways }: Replicas): void {
  async function change(method: 'PUT' | 'POST', path: string, body: unknown = {}): Promise<void> {
    const url = `${gateways[0]!.addresses.operatorUrl}/_operator/v1${path}`;
    const changed = await onceServed(() => call(url, OPERATOR_SECRET, { method, body: JSON.stringify(body) }));
    expect(changed.status).toBeLessThan(300);
  }

  /** Sends a request to this gateway. Returns `ok` or the code of the error. */
  async function ask(gateway: ServiceProcess, key: string, body: Record<string, unknown> = {}): Promise<string> {
    const { status, body: answer } = await chat(gateway, key, body);
    return status === 200 ? 'ok' : (answer as unknown as { error: { code: string } }).error.code;
  }

  /** How long a change takes until it is in force at both gateways, from its sending and from its answer. */
  async function takes(
    key: string,
    changed: Promise<void>,
    outcome: string,
  ): Promise<{ sentMs: number; doneMs: number }> {
    const sent = performance.now();
    await changed;
    const answered = performance.now();
    const took = await Promise.all(
      gateways.map((gateway) =>
        inForceAfterMs(
          async () => expect(await ask(gateway, key, { max_tokens: 1 })).toBe(outcome),
          answered,
          PROCESSES,
        ),
      ),
    );
    const doneMs = Math.max(...took);
    return { sentMs: answered - sent + doneMs, doneMs };
  }

  function report(what: string, all: readonly { sentMs: number; doneMs: number }[]): number {
    const worst = (name: 'sentMs' | 'doneMs') => Math.max(...all.map((one) => one[name]));
    process.stderr.write(
      `${what}: in force ${worst('sentMs').toFixed()} ms after it was sent, ` +
        `${worst('doneMs').toFixed()} ms after its answer\n`,
    );
    return worst('doneMs');
  }

  it('a budget is in force on every gateway within a second of its answer', async () => {
    const tenant = await newTenant(gateways[0]!);
    const path = `/tenants/${tenant.id}/budget`;
    const all = [];
    for (let round = 0; round < ROUNDS; round++) {
      all.push(await takes(tenant.key, change('PUT', path, { monthlyBudgetCents: 0 }), 'budget_reached'));
      all.push(await takes(tenant.key, change('PUT', path, { monthlyBudgetCents: null }), 'ok'));
    }
    expect(report('a budget', all)).toBeLessThan(IN_FORCE_MS);
  });

  it('a suspension is in force on every gateway within a second of its answer', async () => {
    const tenant = await newTenant(gateways[0]!);
    const all = [];
    for (let round = 0; round < ROUNDS; round++) {
      all.push(await takes(tenant.key, change('POST', `/tenants/${tenant.id}/suspend`), 'tenant_suspended'));
      all.push(await takes(tenant.key, change('POST', `/tenants/${tenant.id}/resume`), 'ok'));
    }
    expect(report('a suspension', all)).toBeLessThan(IN_FORCE_MS);
  });

  it('a budget is never exceeded, also after Redis was emptied, and each threshold is published once', async () => {
    const BUDGET_CENTS = 20;
    /** The events on the topic, which no service consumes. */
    const told = async () => {
      const events: BudgetEvent[] = [];
      await readTopic({ brokers: deployment.kafka.brokers, clientId: 'test' }, 'budget-events', ({ value }) =>
        events.push((JSON.parse(String(value)) as Envelope<BudgetEvent>).data),
      );
      return events;
    };
    const tenant = await newTenant(gateways[0]!);
    await change('PUT', `/tenants/${tenant.id}/budget`, { monthlyBudgetCents: BUDGET_CENTS });
    const spend = () => Promise.all(gateways.map((gateway) => ask(gateway, tenant.key)));
    const spent = ['budget_reached', 'budget_reached'];
    await eventually(async () => expect(await spend()).toEqual(spent), { timeoutMs: WAIT_MS, everyMs: 1 });
    const own = async () => (await told()).filter((event) => event.tenantId === tenant.id);
    await eventually(async () => expect((await own()).map((event) => event.thresholdPercent)).toEqual([50, 80, 100]), {
      timeoutMs: WAIT_MS,
    });
    for (const event of await own())
      expect(BigInt(event.spentNanos)).toBeLessThanOrEqual(BigInt(BUDGET_CENTS) * 10_000_000n);

    await deployment.redis.exec(['redis-cli', '-p', String(deployment.redis.port), 'FLUSHALL']);
    // Until the key and the books are back, requests are told to try again.
    const seen = new Set<string>();
    await eventually(
      async () => {
        const answers = await spend();
        for (const answer of answers) seen.add(answer);
        expect(answers).toEqual(spent);
      },
      { timeoutMs: WAIT_MS },
    );
    expect(seen).not.toContain('ok');
    expect(await own()).toHaveLength(3);
  });
}
