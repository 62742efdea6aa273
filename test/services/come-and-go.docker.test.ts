import { eventually, type TestContainer } from '@tollgate/testing';
import { useDeployment } from './deployment';
import type { App, ServiceProcess } from './service-process';
import { chat, newTenant, type Tenant } from './first-steps';

/** Of a dependency that went away or came back: bounded by the checks' own time-outs. */
const NOTICE_TIMEOUT_MS = 30_000;
const deployment = useDeployment();
const services = {} as Record<App, ServiceProcess>;
let tenant: Tenant;

beforeAll(async () => {
  await Promise.all(
    (['gateway', 'auth', 'metering', 'billing'] as const).map(async (app) => {
      services[app] = await deployment.start(app);
    }),
  );
  tenant = await newTenant(services.gateway);
});

/** Until every service says so of itself. */
async function expectReadiness(expected: Record<App, 'ok' | 'unavailable'>): Promise<void> {
  await eventually(
    async () => {
      const states = Object.entries(services).map(async ([app, service]) => [app, (await service.readiness()).status]);
      expect(Object.fromEntries(await Promise.all(states))).toEqual(expected);
    },
    { timeoutMs: NOTICE_TIMEOUT_MS, everyMs: 100 },
  );
}

/** Every service that depends on it says that it is away, and that all else is there. */
async function expectAway(name: string): Promise<void> {
  await eventually(
    async () => {
      for (const service of Object.values(services)) {
        expect(service.hasEnded).toBe(false);
        for (const [dependency, { ok }] of Object.entries((await service.readiness()).dependencies))
          expect([service.app, dependency, ok]).toEqual([service.app, dependency, dependency !== name]);
      }
    },
    { timeoutMs: NOTICE_TIMEOUT_MS },
  );
}

const READY = { gateway: 'ok', auth: 'ok', metering: 'ok', billing: 'ok' } as const;

it.each([
  ['Redis', 'redis', () => deployment.redis, { ...READY, gateway: 'unavailable' }],
  [
    'Kafka',
    'kafka',
    () => deployment.kafka,
    { auth: 'unavailable', metering: 'unavailable', billing: 'unavailable', gateway: 'ok' },
  ],
  [
    'PostgreSQL',
    'postgres',
    () => deployment.postgres,
    { auth: 'unavailable', metering: 'unavailable', billing: 'unavailable', gateway: 'ok' },
  ],
] as const)(
  'without %s exactly those are not ready that need it, and all are again when it is back',
  async (_, name, server, expected) => {
    const container: TestContainer = server();
    await container.stop();
    try {
      await expectReadiness(expected);
      await expectAway(name);
      if (expected.gateway === 'ok') expect((await chat(services.gateway, tenant.key)).status).toBe(200);
      else {
        const refused = await chat(services.gateway, tenant.key);
        expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
      }
    } finally {
      await container.start();
    }
    await expectReadiness(READY);
    await eventually(async () => expect((await chat(services.gateway, tenant.key)).status).toBe(200), {
      timeoutMs: NOTICE_TIMEOUT_MS,
    });
  },
);

it('goes on after all of them were away together, without a restart of any service', async () => {
  const { redis, kafka, postgres } = deployment;
  await Promise.all([redis.kill(), kafka.kill(), postgres.kill()]);
  await expectReadiness({
    gateway: 'unavailable',
    auth: 'unavailable',
    metering: 'unavailable',
    billing: 'unavailable',
  });
  // In another order than they are needed.
  await kafka.start();
  await redis.start();
  await postgres.start();
  await expectReadiness(READY);
  // Kafka answers; the groups of those that answer requests may take a moment longer.
  const later = await eventually(() => newTenant(services.gateway), { timeoutMs: NOTICE_TIMEOUT_MS });
  expect((await chat(services.gateway, later.key)).status).toBe(200);
});

it.each(['gateway', 'auth', 'metering', 'billing'] as const)('%s heeds a signal while it starts', async (app) => {
  const service = deployment.spawn(app);
  await eventually(() => expect(service.addresses.health).toBeDefined(), { timeoutMs: NOTICE_TIMEOUT_MS });
  expect((await service.readiness()).status).toBe('starting');
  expect(await service.end()).toBe(0);
});

it('says that it is stopping before anything else, and still serves for the time that load balancers need', async () => {
  const gateway = await deployment.start('gateway', { TOLLGATE_LAME_DUCK_SECONDS: '2' });
  gateway.child.kill('SIGTERM');
  await eventually(async () => expect((await gateway.readiness()).status).toBe('stopping'));
  expect((await chat(gateway, tenant.key)).status).toBe(200);
  // The same wish again.
  gateway.child.kill('SIGTERM');
  expect(await gateway.exited()).toBe(0);
});
