import { NANOS_PER_CENT } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import Redis from 'ioredis';
import { Client } from 'pg';
import { setTimeout } from 'node:timers/promises';
import type { Deployment, Replicas } from '../services/deployment';
import { BUDGET_CENTS, Deployed, OUTPUT_TOKEN_NANOS, type Answer } from './deployed';

/** Longer than a request waits for the books of a tenant that an emptied Redis does not know. */
const UNKNOWN_TENANT_LIMIT_MS = 3_500;
const SETTLED_LIMIT_MS = 20_000;
/**
 * The longest wait of a client for its 503 while Redis is unavailable, and for service when it is back, without its
 * waits for the machine.
 */
const REFUSAL_LIMIT_MS = 1_000;
const RECOVERY_LIMIT_MS = 2_000;
/** The clients pause, so that the measured processes have a core, too. */
const [CLIENTS, CLIENT_PAUSE_MS] = [4, 20];
/**
 * A long stream. After half of its first slice of 1,024 tokens it has not asked for an extension yet. After three
 * quarters it has.
 */
const [NOT_ASKED_TOKENS, ASKED_BY_TOKENS, TOKENS] = [512, 780, 1_200];
const REFUSALS_SEEN = 20;

/** Expects success or "try again", never a refusal for the key or the credit. */
function expectDoneOrLater({ status, code, retryAfter }: Answer): void {
  expect([status, code]).toEqual([expect.any(Number), status === 200 ? null : 'overloaded_error']);
  if (status !== 200) expect([status, Number(retryAfter) >= 1]).toEqual([503, true]);
}

/** A Redis that loses its data or is unavailable while services run. */
export function redisTests(deployment: Deployment, replicas: Replicas): void {
  let deployed: Deployed;
  beforeAll(() => void (deployed = new Deployed(deployment, replicas.gateway)));

  /** Makes a tenant and waits until its credit is in force. */
  async function tenantWithCredit(options: Parameters<Deployed['newTenant']>[0] = {}) {
    const tenant = await deployed.newTenant(options);
    const answers: Answer[] = [];
    await eventually(
      async () => {
        const answer = await deployed.chat(tenant.key);
        expect(answer.status).toBe(200);
        answers.push(answer);
      },
      { timeoutMs: SETTLED_LIMIT_MS },
    );
    return { ...tenant, answers };
  }

  const charged = (tenantId: string, answers: readonly Answer[]) =>
    eventually(() => deployed.expectCharged(tenantId, answers), { timeoutMs: SETTLED_LIMIT_MS, everyMs: 200 });

  describe('a Redis that is emptied while everything runs', () => {
    it('serves known and unknown keys again without a restart, and never answers 401 or 402 meanwhile', async () => {
      const tenant = await tenantWithCredit();
      const cold = await deployed.issueKey(tenant.id);
      await deployed.empty();
      const from = performance.now();
      let served = [false, false];
      await eventually(async () => {
        const answers = await Promise.all([tenant.key, cold.key].map((key) => deployed.chat(key)));
        tenant.answers.push(...answers);
        answers.forEach(expectDoneOrLater);
        served = served.map((before, i) => before || answers[i]!.status === 200);
        expect(served).toEqual([true, true]);
      });
      process.stderr.write(
        `emptied Redis: known and unknown keys served after ${(performance.now() - from).toFixed()} ms\n`,
      );
      await charged(tenant.id, tenant.answers);
    });

    it('still knows how much of the monthly budget is spent', async () => {
      const tenant = await tenantWithCredit({ profile: 'tight' });
      const reached = () =>
        eventually(async () => {
          const answer = await deployed.chat(tenant.key, { tokens: 20 });
          tenant.answers.push(answer);
          expect([answer.status, answer.code]).toEqual([402, 'budget_reached']);
        });
      await reached();
      await charged(tenant.id, tenant.answers);
      await deployed.empty();
      // The first answer other than "try again" is the refusal.
      await eventually(async () => {
        const answer = await deployed.chat(tenant.key, { tokens: 20 });
        if (answer.status === 503) throw new Error('not yet');
        expect([answer.status, answer.code]).toEqual([402, 'budget_reached']);
      });
      const spent = tenant.answers.reduce((sum, { costNanos }) => sum + costNanos, 0n);
      expect(spent).toBeLessThanOrEqual(BigInt(BUDGET_CENTS) * NANOS_PER_CENT);
    });

    it('breaks no running request: each runs to its end and is charged once at its cost', async () => {
      const tenant = await tenantWithCredit();
      const running = [true, false, true].map((stream) =>
        deployed.chat(tenant.key, { stream, tokens: 200, tokensPerSecond: 20 }),
      );
      await eventually(() => expect(deployment.simulator.stats().openNow).toBe(3));
      await deployed.empty();
      const answers = await Promise.all(running);
      for (const answer of answers) expect(answer).toMatchObject({ status: 200, id: expect.stringMatching(/^req_/) });
      await charged(tenant.id, [...tenant.answers, ...answers]);
      expect(await deployed.gateways[0]!.metrics()).toMatch(/^tollgate_settled_without_hold_total [3-9]/m);
    });

    it('answers 503 with Retry-After within seconds while Kafka is silent, and serves when it is back', async () => {
      const tenant = await tenantWithCredit();
      await deployment.kafka.pause();
      await deployed.empty();
      for (let tries = 0; tries < 3; tries++) {
        const waits = deployed.machineWaits();
        const answer = await deployed.chat(tenant.key);
        const lateMs = await waits.end();
        expectDoneOrLater(answer);
        expect(answer.status).toBe(503);
        expect(answer.tookMs).toBeLessThan(UNKNOWN_TENANT_LIMIT_MS + lateMs);
      }
      await deployment.kafka.unpause();
      const from = performance.now();
      await eventually(
        async () => {
          const answer = await deployed.chat(tenant.key);
          tenant.answers.push(answer);
          expectDoneOrLater(answer);
          expect(answer.status).toBe(200);
        },
        { timeoutMs: 60_000 },
      );
      process.stderr.write(`emptied Redis, Kafka back: served after ${(performance.now() - from).toFixed()} ms\n`);
      await charged(tenant.id, tenant.answers);
    });

    it('overdraws by at most the usage that was not gathered at that moment, and still charges it', async () => {
      const CREDIT_CENTS = 10;
      const tenant = await tenantWithCredit({ cents: CREDIT_CENTS });
      // The lock keeps charges out of the books.
      const lock = new Client({ connectionString: deployment.postgres.url });
      await lock.connect();
      await charged(tenant.id, tenant.answers);
      await lock.query('BEGIN');
      await lock.query('LOCK TABLE billing.charge IN SHARE MODE');
      let ungathered = 0n;
      for (let n = 0; n < 10; n++) {
        const answer = await deployed.chat(tenant.key, { tokens: 20 });
        expect(answer.status).toBe(200);
        tenant.answers.push(answer);
        ungathered += answer.costNanos;
      }
      await deployed.empty();
      await eventually(
        async () => {
          const answer = await deployed.chat(tenant.key, { tokens: 20 });
          tenant.answers.push(answer);
          expect([answer.status, answer.code]).toEqual([402, 'credit_exhausted']);
        },
        { timeoutMs: 20_000, everyMs: 1 },
      );
      await lock.query('COMMIT');
      await lock.end();
      await charged(tenant.id, tenant.answers);
      const used = tenant.answers.reduce((sum, { costNanos }) => sum + costNanos, 0n);
      const overdraft = used - BigInt(CREDIT_CENTS) * NANOS_PER_CENT;
      process.stderr.write(`emptied Redis: overdraft ${overdraft} nanos of ${ungathered} not gathered\n`);
      expect(overdraft).toBeGreaterThan(0n);
      expect(overdraft).toBeLessThanOrEqual(ungathered);
      const [books] = await deployed.query<{ balance: number }>(
        'SELECT balance_cents::int AS balance FROM billing.tenant_books WHERE tenant_id = $1',
        [tenant.id],
      );
      expect(books!.balance).toBeGreaterThanOrEqual(0);
    });
  });

  /** Waits until the gateway answers a load balancer with this status. */
  const expectReadyz = (status: number): Promise<void> =>
    eventually(async () => {
      expect((await fetch(`${deployed.gateways[0]!.addresses.health}/readyz`)).status).toBe(status);
    });

  describe('while Redis is unavailable', () => {
    const { redis } = deployment;

    it.each([
      ['silent', () => redis.pause(), () => redis.unpause()],
      ['killed', () => redis.kill(), () => redis.start()],
      ['cut off', () => redis.disconnect(), () => redis.connect()],
    ])(
      '(%s), requests get 503 with Retry-After within a second, and service within two of its return',
      async (name, fault, cure) => {
        const tenant = await tenantWithCredit();
        const answers: (Answer & { atMs: number })[] = [];
        let going = true;
        const clients = Array.from({ length: CLIENTS }, async () => {
          while (going) {
            const atMs = performance.now();
            answers.push({ ...(await deployed.chat(tenant.key)), atMs });
            await setTimeout(CLIENT_PAUSE_MS);
          }
        });
        const refused = () => answers.filter(({ status }) => status !== 200);
        const waits = deployed.machineWaits();
        await fault();
        await eventually(() => expect(refused().length).toBeGreaterThan(REFUSALS_SEEN));
        await expectReadyz(503);
        await cure();
        const backMs = performance.now();
        const [recoveredMs, readyMs] = await Promise.all([
          eventually(() => {
            const first = answers.find(({ status, atMs }) => status === 200 && atMs > backMs);
            expect(first).toBeDefined();
            return first!.atMs + first!.tookMs - backMs;
          }),
          expectReadyz(200).then(() => performance.now() - backMs),
        ]);
        going = false;
        await Promise.all(clients);
        const lateMs = await waits.end();
        const slowestMs = Math.max(...refused().map(({ tookMs }) => tookMs));
        process.stderr.write(
          `Redis ${name}: ${refused().length} refused, the slowest after ${slowestMs.toFixed()} ms; ` +
            `served ${recoveredMs.toFixed()} ms and ready ${readyMs.toFixed()} ms after its return; ` +
            `${lateMs.toFixed()} ms may be due to the machine\n`,
        );
        answers.forEach(expectDoneOrLater);
        expect(slowestMs).toBeLessThan(REFUSAL_LIMIT_MS + lateMs);
        expect(recoveredMs).toBeLessThan(RECOVERY_LIMIT_MS + lateMs);
        expect(readyMs).toBeLessThan(RECOVERY_LIMIT_MS + lateMs);
        // There may be further charges, for settled requests whose answers the fault cut off.
        await eventually(
          async () => {
            const rows = await deployed.query<{ id: string; cost: string }>(
              'SELECT id, cost_nanos::text AS cost FROM billing.charge WHERE tenant_id = $1',
              [tenant.id],
            );
            const charges = new Map(rows.map(({ id, cost }) => [id, cost]));
            const complete = [...tenant.answers, ...answers].filter(({ id }) => id !== null);
            expect(complete.filter(({ id, costNanos }) => charges.get(id!) !== String(costNanos))).toEqual([]);
          },
          { timeoutMs: SETTLED_LIMIT_MS, everyMs: 200 },
        );
      },
    );

    it('for keys but not for credit, the gateway is not ready', async () => {
      await expectReadyz(200);
      const admin = new Redis(redis.url);
      const [, maxClients = ''] = (await admin.config('GET', 'maxclients')) as string[];
      try {
        // Existing connections stay. No new one is accepted, also not of a client whose connection was closed.
        await admin.config('SET', 'maxclients', 1);
        const clients = String(await admin.client('LIST'))
          .trim()
          .split('\n');
        const ofKeys = clients.filter((line) => line.includes(' name=tollgate-credentials '));
        for (const line of ofKeys) await admin.client('KILL', 'ID', /^id=(\d+)/.exec(line)![1]!);
        await expectReadyz(503);
      } finally {
        await admin.config('SET', 'maxclients', maxClients);
        admin.disconnect();
      }
      await expectReadyz(200);
    });

    it('a stream that ends gets an error event, and is charged all its tokens when Redis is back', async () => {
      const tenant = await tenantWithCredit();
      const whole = await deployed.chat(tenant.key, { stream: true, tokens: 1 });
      const answer = await deployed.open(tenant.key, { stream: true, tokens: 120, tokensPerSecond: 30 });
      await redis.pause();
      const text = await answer.text();
      expect(text).toContain('"overloaded_error"');
      expect(text.match(/"content":"[^"]/g)).toHaveLength(120);
      await redis.unpause();
      const costs = () =>
        deployed.query<{ cost: string }>('SELECT cost_nanos::text AS cost FROM billing.charge WHERE tenant_id = $1', [
          tenant.id,
        ]);
      const cost = whole.costNanos + 119n * OUTPUT_TOKEN_NANOS;
      await eventually(async () => expect(await costs()).toContainEqual({ cost: String(cost) }), {
        timeoutMs: SETTLED_LIMIT_MS,
      });
      expect(await deployed.gateways[0]!.metrics()).toMatch(/^tollgate_settled_late_total [1-9]/m);
    });

    it('a stream that needs an extension gets it when Redis is back, and runs to its own end', async () => {
      const tenant = await tenantWithCredit();
      const answer = await deployed.open(tenant.key, { stream: true, tokens: TOKENS, tokensPerSecond: 80 });
      const reader = answer.body!.getReader();
      let text = '';
      const tokens = () => text.match(/"content":"[^"]/g)?.length ?? 0;
      const readOn = async () => {
        const part = await reader.read();
        text += Buffer.from(part.value ?? []).toString();
        return !part.done;
      };
      while (tokens() < NOT_ASKED_TOKENS) expect(await readOn()).toBe(true);
      await redis.pause();
      while (tokens() < ASKED_BY_TOKENS) expect(await readOn()).toBe(true);
      await redis.unpause();
      while (await readOn());
      expect(text).toMatch(new RegExp(`"completion_tokens":${TOKENS}\\b.*data: \\[DONE\\]\\n\\n$`, 's'));
      expect(text).not.toContain('"error"');
    });
  });
}
