import { eventually } from '@tollgate/testing';
import { Client } from 'pg';
import { withDatabase as databaseUrl } from '@tollgate/testing';
import { complete, createTenant, reconciled, writeConfig } from './fixtures';
import { operator, StandaloneProcess, useDataDirectory, type Ready } from './standalone-process';

jest.setTimeout(90_000);
const name = `two_${process.pid}`;
const adminUrl = process.env['TOLLGATE_TEST_DATABASE_URL']!;
let one: StandaloneProcess & { ready: Ready };
let two: StandaloneProcess & { ready: Ready };

async function admin(sql: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

const first = useDataDirectory();
const second = useDataDirectory();
beforeAll(async () => {
  await admin(`CREATE DATABASE ${name}`);
  const env = { DATABASE_URL: databaseUrl(adminUrl, name), TOLLGATE_CONFIG: writeConfig(first.path) };
  // Started at the same moment on an empty database: migrations and the demo happen once.
  [one, two] = await Promise.all([
    StandaloneProcess.start({ ...env, TOLLGATE_DATA_DIR: first.path }),
    StandaloneProcess.start({ ...env, TOLLGATE_DATA_DIR: second.path }),
  ]);
});
// After the directories' own hooks: by then both processes have ended.
afterAll(async () => {
  await admin(`DROP DATABASE ${name} WITH (FORCE)`);
});

describe('two processes on one DATABASE_URL', () => {
  const hello = { messages: [{ role: 'user', content: 'hello' }] };

  it('make one demo between them', () => {
    expect([one.ready.demo, two.ready.demo].filter(Boolean)).toHaveLength(1);
  });

  it('share keys, credit and the limit of requests', async () => {
    const tenant = await createTenant(one.ready, 1_000, 'slow');
    const answers = [];
    for (let i = 0; i < 14; i++) answers.push(await complete(i % 2 ? one.ready : two.ready, tenant.key, hello));
    // One of the ten went to the probe of createTenant.
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(9);
    expect(new Set(answers.filter((answer) => answer.status !== 200).map((answer) => answer.code))).toEqual(
      new Set(['requests_limit_exceeded']),
    );
  });

  it('share the places at once, also those of streams', async () => {
    const tenant = await createTenant(two.ready, 1_000, 'slow');
    const slow = { ...hello, stream: true, simulator: { tokensPerSecond: 100, answerTokens: 80 } };
    const running = [one, two, one, two].map((process) => complete(process.ready, tenant.key, slow));
    await eventually(async () => {
      const { body } = await operator(one.ready).post<{ data: { pendingHolds: number } }>('/_operator/v1/reconcile');
      expect(body.data.pendingHolds).toBe(4);
    });
    expect(await complete(two.ready, tenant.key, hello)).toMatchObject({
      status: 429,
      code: 'concurrency_limit_exceeded',
    });
    expect((await Promise.all(running)).map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
    expect((await complete(one.ready, tenant.key, hello)).status).toBe(200);
  });

  it('share a revocation within a second', async () => {
    const worst: number[] = [];
    for (let round = 0; round < 5; round++) {
      const tenant = await createTenant(one.ready, 100);
      expect((await complete(two.ready, tenant.key, hello)).status).toBe(200);
      await operator(one.ready).delete(`/_operator/v1/tenants/${tenant.id}/keys/${tenant.keyId}`);
      const revoked = performance.now();
      await eventually(async () => expect((await complete(two.ready, tenant.key, hello)).status).toBe(401), {
        timeoutMs: 1_000,
        everyMs: 5,
      });
      worst.push(performance.now() - revoked);
    }
    expect(Math.max(...worst)).toBeLessThan(1_000);
  });

  it('go on without each other: one is killed, the other settles what it left and keeps the books', async () => {
    const tenant = await createTenant(two.ready, 1_000);
    await Promise.all([complete(one.ready, tenant.key, hello), complete(two.ready, tenant.key, hello)]);
    const cut = complete(one.ready, tenant.key, {
      ...hello,
      stream: true,
      simulator: { tokensPerSecond: 50, answerTokens: 2_000 },
    });
    cut.catch(() => {});
    await eventually(async () => {
      const { body } = await operator(two.ready).post<{ data: { pendingHolds: number } }>('/_operator/v1/reconcile');
      expect(body.data.pendingHolds).toBe(1);
    });
    await one.end('SIGKILL');
    await expect(cut).rejects.toThrow();
    expect((await complete(two.ready, tenant.key, hello)).status).toBe(200);
    await reconciled(two.ready);
  });
});
