import { elapsedMs, eventually, onceServed } from '@tollgate/testing';
import { Client } from 'pg';
import type { Deployment } from './deployment';
import { chat, newTenant } from './first-steps';
import type { App, ServiceProcess } from './service-process';

/** The time between the end of the drain and the kill, STOP_RESERVE_S of tools/stack/settings.mjs. */
const STOP_RESERVE_MS = 15_000;
const SETTLED_TIMEOUT_MS = 60_000;
/** The request that proves the tenant's credit, and the one while Kafka is silent. */
const REQUESTS = 2;
const APPS: readonly App[] = ['gateway', 'auth', 'metering', 'billing'];

/** Stops a service by SIGTERM. Returns its exit code and how long it took. */
async function stop(service: ServiceProcess): Promise<{ code: number | null; tookMs: number }> {
  let code: number | null = null;
  const tookMs = await elapsedMs(async () => (code = await service.end()));
  return { code, tookMs };
}

/** Services that stop while Kafka is silent. */
export function silentKafkaTests(deployment: Deployment): void {
  it('ends every service normally before it would be killed, and the next start publishes its messages', async () => {
    const services = await Promise.all(APPS.map((app) => deployment.start(app)));
    const tenant = await eventually(() => newTenant(services[0]!), { timeoutMs: STOP_RESERVE_MS });
    await deployment.kafka.pause();
    try {
      // The usage event of this request cannot be published.
      expect((await onceServed(() => chat(services[0]!, tenant.key))).status).toBe(200);
      const ends = await Promise.all(services.map(stop));
      const times = ends.map(({ tookMs }, i) => `${APPS[i]} ${(tookMs / 1_000).toFixed(1)} s`);
      process.stderr.write(`Stops while Kafka is silent: ${times.join(', ')}\n`);
      for (const [i, { code, tookMs }] of ends.entries()) {
        if (code !== 0) throw new Error(`${APPS[i]} ended with ${code}:\n${services[i]!.stderr.slice(-2_000)}`);
        expect([APPS[i], tookMs < STOP_RESERVE_MS]).toEqual([APPS[i], true]);
      }
    } finally {
      await deployment.kafka.unpause();
    }
    const next = await Promise.all(APPS.map((app) => deployment.start(app)));
    const [, , metering] = next;
    await eventually(async () => expect(await metering!.metrics()).toMatch(/^tollgate_holds\{state="settled"\} 0$/m), {
      timeoutMs: SETTLED_TIMEOUT_MS,
    });
    await eventually(async () => expect(await charges(tenant.id)).toBe(REQUESTS), { timeoutMs: SETTLED_TIMEOUT_MS });
    for (const service of next) expect([service.app, await service.end()]).toEqual([service.app, 0]);
  });

  async function charges(tenantId: string): Promise<number> {
    const client = new Client({ connectionString: deployment.postgres.url });
    await client.connect();
    try {
      const counted = 'SELECT count(*)::int AS n FROM billing.charge WHERE tenant_id = $1';
      return (await client.query<{ n: number }>(counted, [tenantId])).rows[0]!.n;
    } finally {
      await client.end();
    }
  }
}
