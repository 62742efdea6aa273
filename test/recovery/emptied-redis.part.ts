import { NANOS_PER_CENT } from '@tollgate/contracts';
import { eventually, onceServed } from '@tollgate/testing';
import { Client } from 'pg';
import type { Deployment, Replicas } from '../services/deployment';
import { BUDGET_CENTS, Deployed, expectDoneOrLater, SETTLED_LIMIT_MS, type Answer } from './deployed';

/** Longer than a request waits for the books of a tenant that an emptied Redis does not know. */
const UNKNOWN_TENANT_LIMIT_MS = 3_500;

/** A Redis that loses its data while services run. */
export function emptiedRedisTests(deployment: Deployment, replicas: Replicas): void {
  let deployed: Deployed;
  beforeAll(() => void (deployed = new Deployed(deployment, replicas.gateway)));

  const charged = (tenantId: string, answers: readonly Answer[]) =>
    eventually(() => deployed.expectCharged(tenantId, answers), { timeoutMs: SETTLED_LIMIT_MS, everyMs: 200 });

  describe('a Redis that is emptied while everything runs', () => {
    it('serves known and unknown keys again without a restart, and never answers 401 or 402 meanwhile', async () => {
      const tenant = await deployed.tenantWithCredit();
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
      const tenant = await deployed.tenantWithCredit({ profile: 'tight' });
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
      const tenant = await deployed.tenantWithCredit();
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
      const tenant = await deployed.tenantWithCredit();
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
      const tenant = await deployed.tenantWithCredit({ cents: CREDIT_CENTS });
      // The lock keeps charges out of the books.
      const lock = new Client({ connectionString: deployment.postgres.url });
      await lock.connect();
      await charged(tenant.id, tenant.answers);
      await lock.query('BEGIN');
      await lock.query('LOCK TABLE billing.charge IN SHARE MODE');
      let ungathered = 0n;
      for (let n = 0; n < 10; n++) {
        const answer = await onceServed(() => deployed.chat(tenant.key, { tokens: 20 }));
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
}
