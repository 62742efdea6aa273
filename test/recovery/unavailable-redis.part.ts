import { eventually, onceServed } from '@tollgate/testing';
import Redis from 'ioredis';
import { setTimeout } from 'node:timers/promises';
import type { Deployment, Replicas } from '../services/deployment';
import { Deployed, expectDoneOrLater, OUTPUT_TOKEN_NANOS, SETTLED_LIMIT_MS, type Answer } from './deployed';

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

/** A Redis that is unavailable while services run, and comes back with its data. */
export function unavailableRedisTests(deployment: Deployment, replicas: Replicas): void {
  let deployed: Deployed;
  beforeAll(() => void (deployed = new Deployed(deployment, replicas.gateway)));

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
        const tenant = await deployed.tenantWithCredit();
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
      const tenant = await deployed.tenantWithCredit();
      const whole = await onceServed(() => deployed.chat(tenant.key, { stream: true, tokens: 1 }));
      const answer = await onceServed(() =>
        deployed.open(tenant.key, { stream: true, tokens: 120, tokensPerSecond: 30 }),
      );
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
      const tenant = await deployed.tenantWithCredit();
      const answer = await onceServed(() =>
        deployed.open(tenant.key, { stream: true, tokens: TOKENS, tokensPerSecond: 80 }),
      );
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
