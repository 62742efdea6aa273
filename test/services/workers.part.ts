import { eventually, inForceAfterMs, onceServed } from '@tollgate/testing';
import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childrenOf } from '../e2e/children-of';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, type Deployment } from './deployment';
import { chat, newTenant, operate } from './first-steps';
import type { ServiceProcess } from './service-process';

const WORKERS = 2;
/** New connections go to the workers in turn, so this many at once reach both. */
const AT_ONCE = 16;
const IN_FORCE_MS = 1_000;
const AGAIN_TIMEOUT_MS = 60_000;
const SPENT_TIMEOUT_MS = 60_000;

/** Runs on a gateway of its own beside the others. */
export function workersTests(deployment: Deployment): void {
  let gateway: ServiceProcess;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-workers-'));
  const config = join(directory, 'tollgate.yaml');
  const copyConfig = () => copyFileSync(deployment.env.TOLLGATE_CONFIG!, `${config}.new`);
  beforeAll(async () => {
    copyConfig();
    renameSync(`${config}.new`, config);
    gateway = await deployment.start('gateway', {
      TOLLGATE_WORKERS: String(WORKERS),
      TOLLGATE_LOG_LEVEL: 'debug',
      TOLLGATE_CONFIG: config,
    });
  });
  afterAll(async () => {
    await gateway.end('SIGKILL');
    rmSync(directory, { recursive: true });
  });

  const askAll = (key: string, body: Record<string, unknown> = {}) =>
    Promise.all(Array.from({ length: AT_ONCE }, () => chat(gateway, key, body)));
  /** The same, each repeated while a busy store makes it a 503. */
  const served = (key: string) =>
    Promise.all(Array.from({ length: AT_ONCE }, () => onceServed(() => chat(gateway, key, { max_tokens: 1 }))));
  /** Kills a worker, and waits for its end. Returns its process id. */
  async function killOne(): Promise<number> {
    const [killed] = childrenOf(gateway.child);
    process.kill(killed!, 'SIGKILL');
    // Its end, which lasts, and not the readiness meanwhile: a new worker may be ready before this process looks.
    await eventually(() => expect(childrenOf(gateway.child)).not.toContain(killed));
    return killed!;
  }
  /** None is missing either: the gateway may not have noticed a death yet, or pauses before it starts another one. */
  const allReady = () =>
    eventually(
      async () => {
        expect(childrenOf(gateway.child)).toHaveLength(WORKERS);
        expect((await gateway.readiness()).status).toBe('ok');
      },
      { timeoutMs: AGAIN_TIMEOUT_MS },
    );

  /** The processes that have logged this. */
  const loggedBy = (text: string) =>
    new Set(
      gateway.stderr
        .split('\n')
        .filter((line) => line.includes(text))
        .map((line) => (JSON.parse(line) as { pid: number }).pid),
    );

  const sample = async (name: string): Promise<number> => {
    const lines = (await gateway.metrics()).split('\n').filter((line) => line.startsWith(name));
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };

  it('workers share a port, and together they serve no more than the credit', async () => {
    const tenant = await newTenant(gateway, { amountCents: 40 });
    const before = await sample('tollgate_requests_total{model="sim-large",outcome="complete"}');
    const answers: number[] = [];
    await eventually(
      async () => {
        const statuses = (await askAll(tenant.key, { max_tokens: 200 })).map(({ status }) => status);
        answers.push(...statuses);
        expect(new Set(statuses)).toEqual(new Set([402]));
      },
      { timeoutMs: SPENT_TIMEOUT_MS, everyMs: 1 },
    );
    const complete = answers.filter((status) => status === 200).length;
    // The lines may arrive after the answers.
    await eventually(() => expect(loggedBy('"msg":"served"')).toEqual(new Set(childrenOf(gateway.child))));
    expect(complete).toBeGreaterThan(0);
    // 429: the rest of the credit is held by requests that run. 503: a busy store answered too late.
    for (const status of answers) expect([200, 402, 429, 503]).toContain(status);
    // The sum over both. A worker that is busy is left out of a single answer.
    await eventually(async () =>
      expect((await sample('tollgate_requests_total{model="sim-large",outcome="complete"}')) - before).toBe(complete),
    );
    const url = `${gateway.addresses.operatorUrl}/_operator/v1/tenants/${tenant.id}/credit`;
    await eventually(async () => {
      const { body } = await onceServed(() => call<{ data: { balanceCents: number } }>(url, OPERATOR_SECRET));
      expect(body.data.balanceCents).toBeLessThan(20);
      expect(body.data.balanceCents).toBeGreaterThanOrEqual(0);
    });
  });

  it('a revoked key is refused by every worker within a second of the answer', async () => {
    const tenant = await newTenant(gateway);
    const { id, key } = await operate<{ id: string; key: string }>(gateway, `/tenants/${tenant.id}/keys`, {
      name: 'revoked',
    });
    await eventually(async () => {
      for (const { status } of await served(key)) expect(status).toBe(200);
    });
    const url = `${gateway.addresses.operatorUrl}/_operator/v1/tenants/${tenant.id}/keys/${id}`;
    const { status } = await onceServed(() => call(url, OPERATOR_SECRET, { method: 'DELETE' }));
    expect(status).toBeLessThan(300);
    const answered = performance.now();
    const tookMs = await inForceAfterMs(async () => {
      for (const each of await served(key)) expect(each.status).toBe(401);
    }, answered);
    expect(tookMs).toBeLessThan(IN_FORCE_MS);
  });

  it('a worker that dies is started again, and the others serve meanwhile', async () => {
    const tenant = await newTenant(gateway);
    const killed = await killOne();
    const { status } = await onceServed(() => chat(gateway, tenant.key, { max_tokens: 1 }));
    expect(status).toBe(200);
    await allReady();
    expect(await sample('tollgate_worker_restarts_total')).toBe(1);
    const now = childrenOf(gateway.child);
    expect(now).toHaveLength(WORKERS);
    expect(now).not.toContain(killed);
  });

  it('a worker that dies after a broken change of tollgate.yaml begins with the accepted version', async () => {
    const tenant = await newTenant(gateway);
    const processes = () => new Set([gateway.child.pid, ...childrenOf(gateway.child)]);
    writeFileSync(config, 'models: [');
    await eventually(() => expect(loggedBy('the old configuration stays in force')).toEqual(processes()));
    const before = await sample('tollgate_worker_restarts_total');
    await killOne();
    await allReady();
    // It started at the first try.
    expect(await sample('tollgate_worker_restarts_total')).toBe(before + 1);
    for (const { status } of await served(tenant.key)) expect(status).toBe(200);
    // All follow the file from there on.
    copyConfig();
    renameSync(`${config}.new`, config);
    await eventually(() => expect(loggedBy('configuration read again')).toEqual(processes()));
  });

  it('a stop ends all workers, and a start without a setting reports it once', async () => {
    const workers = childrenOf(gateway.child);
    expect(await gateway.end()).toBe(0);
    for (const pid of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    const broken = deployment.spawn('gateway', {
      TOLLGATE_WORKERS: String(WORKERS),
      TOLLGATE_CONFIG: '/no/such/file.yaml',
    });
    expect(await broken.exited()).toBe(1);
    expect(broken.stderr.match(/no\/such\/file\.yaml/g)).toHaveLength(1);
  });
}
