import { availableParallelism, loadavg } from 'node:os';
import { elapsedMs, eventually, onceServed, type TestContainer } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import type { Deployment, Replicas } from './deployment';
import type { App, ServiceProcess } from './service-process';
import { chat, newTenant, type Tenant } from './first-steps';
import { ALL } from './refusals';

/** Time to notice that a dependency stopped or returned, which depends on the time limits of the checks. */
const NOTICE_TIMEOUT_MS = 30_000;
/** Time for the consumers to join their groups again, and for waiting messages to pass through the services. */
const BACK_TIMEOUT_MS = 200_000;
const WITH_KAFKA_BACK_TIMEOUT_MS = 400_000;
/** From a signal during a start to the end of the process, with a core of its own. On a busy machine, in proportion. */
const START_CUT_LIMIT_MS = 2_000;
/** The load average lags behind by a minute, so current starts are counted separately. */
const howBusy = (starts: number) =>
  Math.max(1, loadavg()[0]! / availableParallelism(), starts / availableParallelism());
const READY = { gateway: 'ok', auth: 'ok', metering: 'ok', billing: 'ok', console: 'ok' } as const;

/** Servers that stop and return, while services run or start. */
export function comeAndGoTests(deployment: Deployment, replicas: Replicas): void {
  const services = (): ServiceProcess[] => Object.values(replicas).flat();
  const firstGateway = (): ServiceProcess => replicas.gateway[0]!;
  let tenant: Tenant;
  beforeAll(async () => void (tenant = await newTenant(firstGateway())));

  /** The status of a chat, repeated while a busy store makes it a 503. */
  const statusAt = async (gateway: ServiceProcess, key: string) => (await onceServed(() => chat(gateway, key))).status;

  /** Waits until every service reports this readiness. */
  async function expectReadiness(expected: Record<App, 'ok' | 'unavailable'>): Promise<void> {
    await eventually(
      async () => {
        for (const service of services())
          expect([service.app, (await service.readiness()).status]).toEqual([service.app, expected[service.app]]);
      },
      { timeoutMs: NOTICE_TIMEOUT_MS, everyMs: 100 },
    );
  }

  /** Waits until each service reports this dependency as unavailable, and its other dependencies as available. */
  async function expectAway(name: string): Promise<void> {
    await eventually(
      async () => {
        for (const service of services()) {
          expect(service.hasEnded).toBe(false);
          for (const [dependency, { ok }] of Object.entries((await service.readiness()).dependencies))
            expect([service.app, dependency, ok]).toEqual([service.app, dependency, dependency !== name]);
        }
      },
      { timeoutMs: NOTICE_TIMEOUT_MS },
    );
  }

  it.each([
    ['Redis', 'redis', () => deployment.redis, { ...READY, gateway: 'unavailable' }],
    [
      'Kafka',
      'kafka',
      () => deployment.kafka,
      { ...READY, auth: 'unavailable', metering: 'unavailable', billing: 'unavailable' },
    ],
    [
      'PostgreSQL',
      'postgres',
      () => deployment.postgres,
      { ...READY, auth: 'unavailable', metering: 'unavailable', billing: 'unavailable' },
    ],
  ] as const)(
    'without %s exactly the services that need it are not ready, and all are ready when it is back',
    async (_, name, server, expected) => {
      const container: TestContainer = server();
      await container.stop();
      try {
        await expectReadiness(expected);
        await expectAway(name);
        if (expected.gateway === 'ok') expect(await statusAt(firstGateway(), tenant.key)).toBe(200);
        else {
          const refused = await chat(firstGateway(), tenant.key);
          expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
        }
      } finally {
        await container.start();
      }
      await expectReadiness(READY);
      await eventually(async () => expect((await chat(firstGateway(), tenant.key)).status).toBe(200), {
        timeoutMs: NOTICE_TIMEOUT_MS,
      });
    },
  );

  it(
    'a gateway that starts while Kafka is silent serves known keys, and everything else when Kafka is back',
    async () => {
      const begun = new Date().toISOString();
      const own = await newTenant(firstGateway());
      const usage = (gateway: ServiceProcess) =>
        call<{ data: { totals: { requests: number } }; error: { code: string } }>(
          // By default it begins with the month, which may end meanwhile.
          `${gateway.addresses.publicUrl}/_api/v1/usage?from=${begun}`,
          own.token,
        );
      const { kafka } = deployment;
      await kafka.pause();
      let gateway: ServiceProcess;
      try {
        gateway = await deployment.start('gateway');
        expect((await gateway.readiness()).dependencies['kafka']).toMatchObject({ ok: false, required: false });
        expect(await statusAt(gateway, own.key)).toBe(200);
        expect(await usage(gateway)).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } });
      } finally {
        await kafka.unpause();
      }
      await eventually(
        async () => {
          expect((await gateway.readiness()).dependencies['kafka']).toMatchObject({ ok: true });
          // The second request is the one whose event waited for Kafka.
          expect(await usage(gateway)).toMatchObject({ status: 200, body: { data: { totals: { requests: 2 } } } });
        },
        { timeoutMs: BACK_TIMEOUT_MS, everyMs: 100 },
      );
      expect(await gateway.end()).toBe(0);
      await expectReadiness(READY);
    },
    WITH_KAFKA_BACK_TIMEOUT_MS,
  );

  it('all services recover without a restart after all servers stopped together', async () => {
    const { redis, kafka, postgres } = deployment;
    await Promise.all([redis.kill(), kafka.kill(), postgres.kill()]);
    await expectReadiness({
      ...READY,
      gateway: 'unavailable',
      auth: 'unavailable',
      metering: 'unavailable',
      billing: 'unavailable',
    });
    // In another order than the services need them.
    await kafka.start();
    await redis.start();
    await postgres.start();
    await expectReadiness(READY);
    const later = await newTenant(firstGateway());
    expect(await statusAt(firstGateway(), later.key)).toBe(200);
  });

  it('a signal ends a start at once, also while it waits for silent servers', async () => {
    const { redis, postgres } = deployment;
    await Promise.all([redis.pause(), postgres.pause()]);
    try {
      await Promise.all(
        ALL.map(async (app) => {
          const service = deployment.spawn(app);
          await eventually(() => expect(service.addresses.health).toBeDefined(), { timeoutMs: NOTICE_TIMEOUT_MS });
          const tookMs = await elapsedMs(async () => expect([app, await service.end()]).toEqual([app, 0]));
          expect(tookMs).toBeLessThan(START_CUT_LIMIT_MS * howBusy(ALL.length));
          expect(service.stderr).toMatch(/stopping before it has started: SIGTERM/);
        }),
      );
    } finally {
      await Promise.all([redis.unpause(), postgres.unpause()]);
    }
    await expectReadiness(READY);
  });

  it('a stopping gateway reports it first, and still serves for the time that load balancers need', async () => {
    const gateway = await deployment.start('gateway', { TOLLGATE_LAME_DUCK_SECONDS: '10' });
    gateway.child.kill('SIGTERM');
    await eventually(async () => expect((await gateway.readiness()).status).toBe('stopping'));
    expect(await statusAt(gateway, tenant.key)).toBe(200);
    // Further signals are ignored.
    gateway.child.kill('SIGTERM');
    expect(await gateway.exited()).toBe(0);
  });
}
