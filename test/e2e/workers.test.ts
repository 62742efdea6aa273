import { TOPICS } from '@tollgate/contracts';
import { eventually, inForceAfterMs, leastMs, onceServed } from '@tollgate/testing';
import { connect } from 'node:net';
import { childrenOf } from './children-of';
import { call, operator } from './deployment';
import { answered, complete, costOf, createTenant, ledgerOf, type Completion } from './fixtures';
import { reconciled } from './reconcile';
import { useStandalone } from './standalone';
import { StandaloneProcess } from './standalone-process';
import { DRAIN_SECONDS, stoppingSuite } from './stopping.suite';
import { workersConfigTests } from './workers-config.part';

const WORKERS = 2;
/** New connections go to the workers in turn, so this many at once reach both. */
const AT_ONCE = 16;
const MAX_CONNECTIONS = 40;
/** More than both workers take, with those that they still tell why: 64 each. */
const TOO_MANY = 240;
const CREDIT_CENTS = 20;
const SPENT_TIMEOUT_MS = 90_000;
const IN_FORCE_MS = 1_000;
/** For a start of a worker on a busy machine. */
const AGAIN_TIMEOUT_MS = 90_000;
/** Less than the streams last. */
const RECORDED_TIMEOUT_MS = 60_000;
const HELLO = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 1 };

// One instance whose public port two workers serve. Its first process keeps the books.
const tollgate = useStandalone({
  env: {
    TOLLGATE_WORKERS: String(WORKERS),
    TOLLGATE_CONSOLE: 'true',
    TOLLGATE_DEMO: 'false',
    TOLLGATE_DRAIN_SECONDS: DRAIN_SECONDS,
    TOLLGATE_LOG_LEVEL: 'debug',
    TOLLGATE_MAX_CONNECTIONS: String(MAX_CONNECTIONS),
  },
});

const instance = (): StandaloneProcess => [...StandaloneProcess.running][0]!;
const workers = (): number[] => childrenOf(instance().child);
/** A chat, repeated while a busy store makes it a 503. */
const hello = (key: string) => onceServed(() => complete(tollgate.ready, key, HELLO));
const atOnce = <T>(ask: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: AT_ONCE }, ask));

/** Its /metrics: the value of each series. */
async function series(): Promise<Map<string, number>> {
  const text = await (await fetch(`${tollgate.ready.operatorUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(line.split(' ').at(-1))]));
}

async function readiness(): Promise<{ status: string; dependencies: Record<string, unknown> }> {
  return (await (await fetch(`${tollgate.ready.operatorUrl}/readyz`)).json()) as never;
}

/** The processes that have logged this, with how often. */
function loggedBy(text: string): Map<number, number> {
  const lines = instance()
    .stderr.split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}') && line.includes(text));
  const pids = lines.map((line) => (JSON.parse(line) as { pid: number }).pid);
  return new Map([...new Set(pids)].map((pid) => [pid, pids.filter((one) => one === pid).length]));
}

/**
 * A stream of 80 s, which its client leaves on the signal. Resolves when it has begun. It is opened again while a busy
 * store makes it a 503.
 */
async function opened(key: string, signal: AbortSignal): Promise<Response> {
  const response = await onceServed(() =>
    fetch(`${tollgate.ready.inferenceUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'sim',
        messages: HELLO.messages,
        stream: true,
        simulator: { tokensPerSecond: 50, answerTokens: 4_000 },
      }),
      signal,
    }),
  );
  expect(response.status).toBe(200);
  return response;
}

/** What has ended the stream. */
async function brokenOff(stream: Response): Promise<'client' | 'killed'> {
  try {
    await stream.text();
    throw new Error('it has ended by itself');
  } catch (error) {
    const { name } = error as Error;
    if (name === 'AbortError') return 'client';
    // The error of a broken connection. Compared by name, because Jest has a class of its own.
    if (name === 'TypeError') return 'killed';
    throw error;
  }
}

/** How many of the tenant's running requests have recorded what they delivered. */
const holdsWithProgress = (tenantId: string): Promise<number> =>
  tollgate.database(async (client) => {
    const { rows } = await client.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM admission.hold
       WHERE tenant_id = $1 AND state = 'pending' AND delivered IS NOT NULL`,
      [tenantId],
    );
    return rows[0]!.count;
  });

describe('two workers', () => {
  it('share the public port, and one /metrics has the sum over them and the books', async () => {
    const completed = 'tollgate_requests_total{model="sim",outcome="complete"}';
    const tenant = await createTenant(tollgate.ready, 1_000);
    const before = (await series()).get(completed) ?? 0;
    const answers = await atOnce(() => hello(tenant.key));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await eventually(() => expect(new Set(loggedBy('"msg":"served"').keys())).toEqual(new Set(workers())));
    // Repeated, because a gauge whose store is busy, and a worker that is, are left out of a single answer.
    await eventually(async () => {
      const after = await series();
      expect(after.get(completed)! - before).toBeGreaterThanOrEqual(AT_ONCE);
      // The workers consume nothing: every group has its consumer in the first process.
      for (const [topic, { groups }] of Object.entries(TOPICS))
        for (const group of Object.keys(groups))
          expect(after.get(`tollgate_messages_waiting{topic="${topic}",group="${group}"}`)).toBeDefined();
    });
    await reconciled(tollgate.ready);
    await eventually(async () => {
      const { status, dependencies } = await readiness();
      expect([status, Object.keys(dependencies)]).toEqual(['ok', ['postgres', 'worker 1', 'worker 2']]);
    });
  });

  it('ask the first process for what the services answer, and serve the console', async () => {
    const tenant = await createTenant(tollgate.ready, 1_000);
    const path = `/_operator/v1/tenants/${tenant.id}/tokens`;
    const minted = await answered(
      () => operator(tollgate.ready).post<{ data: { token: string } }>(path, { name: 't', scopes: ['keys:read'] }),
      201,
    );
    const keys = () => call<{ data: { id: string }[] }>(`${tollgate.ready.managementUrl}/keys`, minted.data.token);
    await eventually(async () => expect((await keys()).status).toBe(200));
    for (const { status, body } of await atOnce(() => onceServed(keys)))
      expect([status, body.data.map(({ id }) => id)]).toEqual([200, [tenant.keyId]]);
    const page = () => fetch(`${new URL(tollgate.ready.inferenceUrl).origin}/console`);
    const pages = await atOnce(async () => ({ status: (await page()).status }));
    expect(pages.map(({ status }) => status)).toEqual(pages.map(() => 200));
    // The first process has created the link of the first operator, and any worker accepts it.
    expect(tollgate.ready).toMatchObject({ console: { firstOperatorLink: expect.stringContaining('/console') } });
  });

  it('together give no more answers than the credit pays for', async () => {
    const tenant = await createTenant(tollgate.ready, CREDIT_CENTS);
    const answers: Completion[] = [];
    await eventually(
      async () => {
        const round = await atOnce(() => complete(tollgate.ready, tenant.key, { ...HELLO, max_tokens: 400 }));
        answers.push(...round);
        expect(new Set(round.map(({ status }) => status))).toEqual(new Set([402]));
      },
      { timeoutMs: SPENT_TIMEOUT_MS, everyMs: 1 },
    );
    // 429: the rest of the credit is held by requests that run. 503: a busy store answered too late.
    for (const { status } of answers) expect([200, 402, 429, 503]).toContain(status);
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length).toBeGreaterThan(0);
    await reconciled(tollgate.ready);
    const books = await ledgerOf(tollgate.database, tenant.id);
    for (const answer of served) expect(books.charges.get(answer.requestId)).toBe(costOf(answer));
    const chargedNanos = [...books.charges.values()].reduce((sum, nanos) => sum + nanos, 0);
    expect(chargedNanos).toBeLessThanOrEqual(CREDIT_CENTS * 1e7);
    expect(books.debitCents * 1e7 + books.carriedNanos).toBe(chargedNanos);
    expect(books.balanceCents).toBe(CREDIT_CENTS - books.debitCents);
  });

  it('refuse a revoked key within a second of the answer', async () => {
    // The least of some, because a worker may get no processor time for a while.
    const tookMs = await leastMs(IN_FORCE_MS, async () => {
      const tenant = await createTenant(tollgate.ready, 1_000);
      await atOnce(() => hello(tenant.key));
      const path = `/_operator/v1/tenants/${tenant.id}/keys/${tenant.keyId}`;
      await answered(() => operator(tollgate.ready).delete(path), 204);
      return inForceAfterMs(async () => {
        for (const { status } of await atOnce(() => hello(tenant.key))) expect(status).toBe(401);
      });
    });
    expect(tookMs).toBeLessThan(IN_FORCE_MS);
  });

  it('refuse connections beyond the limit of both, and serve again when there are fewer', async () => {
    const refused = async () => (await series()).get('tollgate_connections_refused_total{port="public"}')!;
    const before = await refused();
    const { port } = new URL(tollgate.ready.inferenceUrl);
    let closed = 0;
    const sockets = Array.from({ length: TOO_MANY }, () =>
      connect(Number(port), '127.0.0.1')
        .on('error', () => {})
        .on('close', () => (closed += 1))
        .resume(),
    );
    try {
      await eventually(async () => {
        expect(closed).toBeGreaterThanOrEqual(TOO_MANY - WORKERS * MAX_CONNECTIONS);
        expect((await refused()) - before).toBeGreaterThanOrEqual(TOO_MANY - WORKERS * MAX_CONNECTIONS);
      });
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    const tenant = await createTenant(tollgate.ready, 1_000);
    await eventually(async () => expect((await hello(tenant.key)).status).toBe(200));
  });
});

describe('a process that dies', () => {
  it('is started again if it is a worker: the other one serves meanwhile, and cut streams are charged', async () => {
    const tenant = await createTenant(tollgate.ready, 1_000);
    const leaving = new AbortController();
    const streams = (await atOnce(() => opened(tenant.key, leaving.signal))).map(brokenOff);
    await eventually(async () => expect(await holdsWithProgress(tenant.id)).toBe(AT_ONCE), {
      timeoutMs: RECORDED_TIMEOUT_MS,
    });
    const [killed, other] = workers();
    process.kill(killed!, 'SIGKILL');
    // Its end, which lasts, and not the readiness meanwhile: a new worker may be ready before this process looks.
    await eventually(() => expect(workers()).not.toContain(killed));
    // After one more answer this process has read the ends of the cut streams. They came before that of the worker.
    await readiness();
    leaving.abort();
    expect((await hello(tenant.key)).status).toBe(200);
    await eventually(() => expect(workers()).toHaveLength(WORKERS));
    await eventually(async () => expect((await readiness()).status).toBe('ok'), { timeoutMs: AGAIN_TIMEOUT_MS });
    // A worker that is busy is left out of a single answer.
    await eventually(async () =>
      expect((await series()).get('tollgate_worker_restarts_total')).toBeGreaterThanOrEqual(1),
    );
    expect(workers()).toContain(other);
    expect(workers()).not.toContain(killed);
    const broken = await Promise.all(streams);
    const cut = broken.filter((by) => by === 'killed').length;
    expect(cut).toBeGreaterThan(0);
    expect(cut).toBeLessThan(AT_ONCE);
    await reconciled(tollgate.ready);
    const { rows } = await tollgate.database((client) =>
      client.query<{ outcome: string; count: number }>(
        `SELECT outcome, count(*)::int AS count FROM metering.usage_event
         WHERE tenant_id = $1 AND outcome <> 'complete' GROUP BY outcome ORDER BY outcome`,
        [tenant.id],
      ),
    );
    expect(rows).toEqual([
      { outcome: 'client_closed', count: AT_ONCE - cut },
      { outcome: 'expired', count: cut },
    ]);
  });

  it('ends the workers too if it is the first process, and the next start continues its work', async () => {
    const tenant = await createTenant(tollgate.ready, 1_000);
    await atOnce(() => hello(tenant.key));
    const orphans = workers();
    await tollgate.kill('servers live on');
    await eventually(() => {
      for (const pid of orphans) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    });
    await tollgate.start();
    await reconciled(tollgate.ready);
  });
});

workersConfigTests({ tollgate, instance, workers, loggedBy, readiness });

stoppingSuite(tollgate);

it('Ctrl-C, which reaches all processes, ends them without starting a worker again', async () => {
  const last = instance();
  const ended = workers();
  for (const pid of [last.child.pid!, ...ended]) process.kill(pid, 'SIGINT');
  await tollgate.stop();
  for (const pid of ended) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  expect(last.stderr).not.toContain('starting it again');
});
