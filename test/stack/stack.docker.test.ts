import { eventually } from '@tollgate/testing';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import OpenAI from 'openai';
import { consoleTests } from './console.part';
import { containersTests } from './containers.part';
import { newSecretsTests } from './new-secrets.part';
import { docker, type Ready, Stack } from './stack-process';
import { wallsTests } from './walls.part';

// Real: everything, as `npm run stack` starts it, with more frequent health checks (stack.yml).
const START_TIMEOUT_MS = 420_000;
const SETTLED_TIMEOUT_MS = 60_000;
const CLIENT_PAUSE_MS = 50;
/** Time for the load balancer to notice that a gateway is not ready or has ended. */
const NOTICE_TIMEOUT_MS = 20_000;
/** Time for containers to start again on a busy machine. */
const BACK_TIMEOUT_MS = 60_000;
/** While Node loads, while the app loads, while it connects, and when it is ready. */
const STOPPED_AFTER_MS = [0, 200, 500, 1_000, 2_000];

const OURS = ['gateway', 'auth', 'metering', 'billing', 'console', 'simulator'];

describe('npm run stack', () => {
  const stack = new Stack();
  let text = '';
  let ready: Ready;
  let tenantId: string;
  let key: string;
  let token: string;

  const client = () => new OpenAI({ baseURL: ready.inferenceUrl, apiKey: key, maxRetries: 0 });
  const ask = (content = 'Hello') =>
    client().chat.completions.create({ model: 'sim-small', messages: [{ role: 'user', content }] });
  const management = async (path: string) =>
    (await fetch(`${ready.managementUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })).json();

  beforeAll(async () => {
    const { code, stdout, stderr } = await stack.up();
    if (code !== 0) throw new Error(stderr);
    text = stdout;
    [, tenantId = ''] = /A demo tenant, (ten_\w+)/.exec(text) ?? [];
    [, key = ''] = /Inference key +(sk-svc-\w+)/.exec(text) ?? [];
    [, token = ''] = /Management token +(fma_\w+)/.exec(text) ?? [];
  }, START_TIMEOUT_MS);
  afterAll(() => stack.remove(), START_TIMEOUT_MS);

  it('prints the lines of npm start, and the printed curl commands work at once', () => {
    expect(text).toMatch(/Tollgate is ready\.\n +Inference API +http:\/\/127\.0\.0\.1:\d+\/v1\n/);
    expect(text).toContain('`npm run stack:down` stops it.');
    const [chat, usage] = text.split('\n').filter((line) => line.trim().startsWith('curl '));
    const run = (line = '') =>
      JSON.parse(execFileSync('sh', ['-c', `${line} --silent --show-error`], { encoding: 'utf8' }));
    expect(run(chat)).toMatchObject({ object: 'chat.completion', usage: { total_tokens: expect.any(Number) } });
    expect(run(usage)).toMatchObject({ data: { totals: { requests: expect.any(Number) } } });
  });

  it('a second start with --json prints one line with the same addresses, and containers keep running', async () => {
    const before = await Promise.all(OURS.map((service) => stack.containers(service)));
    const { code, stdout, stderr } = await stack.up(['--json']);
    expect({ code, stdout: stdout.trim().split('\n'), stderr }).toMatchObject({
      code: 0,
      stdout: [expect.any(String)],
    });
    ready = JSON.parse(stdout) as Ready;
    expect(text).toContain(`Inference API   ${ready.inferenceUrl}\n`);
    expect(text).toContain(`Management API  ${ready.managementUrl}\n`);
    expect(text).toContain(`Console         ${ready.console.url}\n`);
    expect(ready).not.toHaveProperty('demo');
    expect(await Promise.all(OURS.map((service) => stack.containers(service)))).toEqual(before);
    expect((await fetch(ready.docsUrl)).status).toBe(200);
  });

  describe('the console', () => {
    const balance = async () =>
      ((await management('/billing')) as { data: { balanceCents: number } }).data.balanceCents;
    consoleTests(stack, () => ({ printed: text, tenantId, ask, balance }));
  });

  it('serves the official client, does not delay streams, and records the cost in the books', async () => {
    const { usage } = await ask();
    expect(usage!.completion_tokens).toBeGreaterThan(0);
    const stream = await client().chat.completions.create({
      model: 'sim-large',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
      ...{ simulator: { tokensPerSecond: 50, answerTokens: 150 } },
    });
    const arrivals: number[] = [];
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) arrivals.push(Date.now());
    expect(arrivals.length).toBeGreaterThan(20);
    // Three seconds of tokens. A proxy that buffers would deliver them all at once.
    expect(arrivals.at(-1)! - arrivals[0]!).toBeGreaterThan(500);
    await eventually(
      async () => {
        const { data } = (await management('/usage')) as { data: { totals: { requests: number } } };
        // The line of curl, the line of the console's test, and two here.
        expect(data.totals.requests).toBe(4);
        const billing = (await management('/billing')) as { data: { entries: { type: string }[] } };
        expect(billing.data.entries.map(({ type }) => type)).toContain('usage');
      },
      { timeoutMs: SETTLED_TIMEOUT_MS },
    );
    await eventually(async () => expect(await stack.tollgate('reconcile')).toMatchObject({ ok: true }));
    expect(await stack.tollgate('tenant', 'list')).toMatchObject([{ id: tenantId, name: 'demo' }]);
  });

  it('the gateway ends a stream when the client leaves the load balancer', async () => {
    const leave = new AbortController();
    const stream = await client().chat.completions.create(
      {
        model: 'sim-small',
        messages: [{ role: 'user', content: 'Hello' }],
        stream: true,
        ...{ simulator: { tokensPerSecond: 10, answerTokens: 1_000 } },
      },
      { signal: leave.signal },
    );
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    leave.abort();
    await eventually(
      async () => expect(await stack.tollgate('reconcile')).toMatchObject({ pendingHolds: 0, ok: true }),
      { timeoutMs: SETTLED_TIMEOUT_MS },
    );
  });

  describe('a changed secret', () => newSecretsTests(stack, () => ({ ready, ask })));

  it('scales to four gateways at run time without a failed request, and all of them serve', async () => {
    const failures: string[] = [];
    let going = true;
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (going) {
          // 429: a fast machine may reach the demo key's limit of requests per minute, which is no failure here.
          await ask().catch((error: { status?: number; message: string }) => {
            if (error.status !== 429) failures.push(error.message);
          });
          await setTimeout(CLIENT_PAUSE_MS);
        }
      }),
    );
    try {
      await stack.compose('up', '--detach', '--wait', '--no-recreate', '--scale', 'gateway=4');
      const gateways = await stack.containers('gateway');
      expect(gateways).toHaveLength(4);
      await eventually(
        async () => expect((await Promise.all(gateways.map(served))).every((count) => count > 0)).toBe(true),
        { timeoutMs: SETTLED_TIMEOUT_MS },
      );
    } finally {
      going = false;
      await load;
    }
    expect(failures).toEqual([]);
  });

  wallsTests(stack, () => ({ tenantId, operatorUrl: ready.operatorUrl }));

  containersTests(stack, OURS);

  it(
    'answers in the envelope of each surface when no gateway is ready and when none is running',
    async () => {
      const refused = async () => {
        const inference = await fetch(`${ready.inferenceUrl}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }] }),
        });
        expect(inference.status).toBe(503);
        expect(Number(inference.headers.get('retry-after'))).toBeGreaterThan(0);
        expect(inference.headers.get('x-request-id')).toMatch(/^req_/);
        expect(await inference.json()).toMatchObject({ error: { type: 'overloaded_error', code: 'overloaded_error' } });
        return inference;
      };
      await stack.compose('stop', '--timeout', '2', 'redis');
      // The answer of the gateway itself, because it has the headers of the key's limits.
      await eventually(async () => expect((await refused()).headers.has('x-ratelimit-limit-requests')).toBe(true), {
        timeoutMs: NOTICE_TIMEOUT_MS,
      });
      await stack.compose('start', 'redis');
      await eventually(ask, { timeoutMs: BACK_TIMEOUT_MS });

      await stack.compose('kill', 'gateway');
      await eventually(async () => expect((await refused()).headers.has('x-ratelimit-limit-requests')).toBe(false), {
        timeoutMs: NOTICE_TIMEOUT_MS,
      });
      await eventually(
        async () =>
          expect(await management('/keys')).toEqual({ error: expect.objectContaining({ code: 'unavailable' }) }),
        { timeoutMs: NOTICE_TIMEOUT_MS },
      );
      await stack.compose('start', 'gateway');
      await eventually(ask, { timeoutMs: BACK_TIMEOUT_MS });
    },
    START_TIMEOUT_MS,
  );

  it(
    'a container that is stopped at any moment of its start ends by itself and is never killed',
    async () => {
      const apps = ['gateway', 'auth', 'metering', 'billing', 'console'];
      const ids = (await Promise.all(apps.map((app) => stack.containers(app)))).map(([id = '']) => id);
      await stack.compose('stop', ...apps);
      for (const afterMs of STOPPED_AFTER_MS) {
        const stopping = ids.map(async (id) => {
          await docker('start', id);
          await setTimeout(afterMs);
          await docker('stop', id);
        });
        await Promise.all(stopping);
        const states = JSON.parse(await docker('inspect', ...ids)) as { State: { ExitCode: number } }[];
        // 143: the program was still loading.
        for (const { State: state } of states) expect([0, 143]).toContain(state.ExitCode);
      }
      await stack.compose('start', ...apps);
      await eventually(ask, { timeoutMs: BACK_TIMEOUT_MS });
    },
    START_TIMEOUT_MS,
  );

  it('refuses to start on the data of another start without its passwords', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'tollgate-stack-'));
    const { code, stdout, stderr } = await stack.up([], { TOLLGATE_DATA_DIR: elsewhere });
    rmSync(elsewhere, { recursive: true });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^tollgate: The volume \S+ has data of an earlier start, but .* are not in .*stack:down -- --volumes\.\n$/,
    );
  });

  it('stack:down keeps the data, and deletes everything with --volumes', async () => {
    expect(await stack.down()).toMatchObject({ code: 0, stdout: '' });
    expect(await stack.remains()).toHaveLength(3);
    expect(existsSync(join(stack.dataDirectory, 'operator.json'))).toBe(false);
    expect(await stack.down(['--volumes'])).toMatchObject({ code: 0 });
    expect(await stack.remains()).toEqual([]);
  });
});

/** The number of requests that a gateway has served. */
async function served(container: string): Promise<number> {
  const metrics = await docker(
    ...['exec', container, 'node', '--eval'],
    `const authorization = 'Bearer ' + fs.readFileSync('/run/secrets/metrics-token', 'utf8').trim();
     fetch('http://127.0.0.1:9090/metrics', { headers: { authorization } })
       .then((answer) => answer.text()).then(console.log)`,
  );
  const counts = [...metrics.matchAll(/^tollgate_requests_total\{[^}]*\} (\d+)$/gm)].map(([, count]) => Number(count));
  return counts.reduce((sum, count) => sum + count, 0);
}
