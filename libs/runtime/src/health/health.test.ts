import { elapsedMs, eventually } from '@tollgate/testing';
import { Health, type Readiness } from './health';
import type { IncomingMessage } from 'node:http';
import { answerProbe, HealthServer, ProbeAccess } from './health-server';

const MAX_ANSWER_MS = 2_000;
let health: Health;
let server: HealthServer;

beforeEach(async () => {
  health = new Health();
  server = await HealthServer.listen(health, '127.0.0.1', 0);
});
afterEach(() => server.close());

async function readyz(): Promise<{ code: number; body: Readiness }> {
  const response = await fetch(`${server.url}/readyz`);
  return { code: response.status, body: (await response.json()) as Readiness };
}

describe('readiness', () => {
  it('is refused during the start and from the beginning of the stop, while liveness stays', async () => {
    expect(await readyz()).toEqual({ code: 503, body: { status: 'starting', dependencies: {} } });
    health.state = 'serving';
    expect(await readyz()).toEqual({ code: 200, body: { status: 'ok', dependencies: {} } });
    health.state = 'stopping';
    expect((await readyz()).body.status).toBe('stopping');
    expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  });

  it('names each dependency, refuses only for required ones, and counts one that hangs as failed', async () => {
    health.state = 'serving';
    health.depend('fine', { required: true, check: async () => {} });
    health.depend('spare', { required: false, check: () => Promise.reject(new Error('gone')) });
    expect(await readyz()).toEqual({
      code: 200,
      body: {
        status: 'ok',
        dependencies: { fine: { ok: true, required: true }, spare: { ok: false, required: false, reason: 'gone' } },
      },
    });
    const scraped = await (await fetch(`${server.url}/metrics`)).text();
    expect(scraped).toContain('tollgate_dependency_up{dependency="fine"} 1');
    expect(scraped).toContain('tollgate_dependency_up{dependency="spare"} 0');
    health.depend('silent', { required: true, check: () => new Promise(() => {}) });
    let probed!: Awaited<ReturnType<typeof readyz>>;
    expect(await elapsedMs(async () => (probed = await readyz()))).toBeLessThan(MAX_ANSWER_MS);
    const { code, body } = probed;
    expect([code, body.status]).toEqual([503, 'unavailable']);
    expect(body.dependencies['silent']).toEqual({ ok: false, required: true, reason: 'no answer within 1000 ms' });
  });

  it('asks a dependency once for simultaneous probes', async () => {
    let asked = 0;
    health.depend('counted', {
      required: true,
      check: async () => {
        asked++;
      },
    });
    await Promise.all(Array.from({ length: 20 }, () => health.readiness()));
    expect(asked).toBe(1);
  });
});

it('readiness gives reasons to callers on its own machine or with the token, and to others only the fact', async () => {
  health.state = 'serving';
  health.depend('redis', { required: true, check: () => Promise.reject(new Error('10.0.0.7 does not answer')) });
  const asked = async (remoteAddress: string, headers: Record<string, string> = {}, token?: string) => {
    const request = { headers, socket: { remoteAddress } } as unknown as IncomingMessage;
    const { status, body } = await answerProbe(
      '/readyz',
      health,
      new ProbeAccess(token === undefined ? [] : ['another-token', token]).callerOf(request),
    );
    return { code: status, body: JSON.parse(body) as unknown };
  };
  const all = { code: 503, body: { status: 'unavailable', dependencies: { redis: expect.anything() } } };
  const least = { code: 503, body: { status: 'unavailable' } };
  for (const own of ['127.0.0.1', '127.8.8.8', '::ffff:127.0.0.1', '::1']) {
    expect(await asked(own)).toEqual(all);
    // A proxy on this machine asks for someone else.
    expect(await asked(own, { 'x-forwarded-for': '203.0.113.9' })).toEqual(least);
  }
  for (const other of ['10.0.0.1', '::ffff:10.0.0.1', '2001:db8::1', '1.127.0.1']) {
    expect(await asked(other)).toEqual(least);
    expect(
      await asked(other, { authorization: 'Bearer the-token-of-the-scraper' }, 'the-token-of-the-scraper'),
    ).toEqual(all);
    expect(await asked(other, { authorization: 'Bearer another' }, 'the-token-of-the-scraper')).toEqual(least);
    // Without a token, no token is right.
    expect(await asked(other, { authorization: 'Bearer undefined' })).toEqual(least);
  }
  const response = await fetch(`${server.url}/readyz`, { headers: { forwarded: 'for=203.0.113.9' } });
  expect([response.status, await response.json()]).toEqual([503, { status: 'unavailable' }]);
});

describe('the answer to a load balancer', () => {
  const trafficz = async () => (await fetch(`${server.url}/trafficz`)).status;

  it('is 404 when no new work may come: in the start, without a required dependency, from the stop on', async () => {
    let away = false;
    health.depend('store', {
      required: true,
      check: () => (away ? Promise.reject(new Error('gone')) : Promise.resolve()),
    });
    health.depend('spare', { required: false, check: () => Promise.reject(new Error('gone')) });
    expect(await trafficz()).toBe(404);
    health.state = 'serving';
    await eventually(async () => expect(await trafficz()).toBe(200));
    away = true;
    await eventually(async () => expect(await trafficz()).toBe(404));
    away = false;
    await eventually(async () => expect(await trafficz()).toBe(200));
    health.state = 'stopping';
    expect(await trafficz()).toBe(404);
  });

  it('waits for no dependency: a silent one changes the answer, and delays none', async () => {
    let silent = false;
    let looks = 0;
    const check = () => {
      looks += 1;
      return silent ? new Promise<void>(() => {}) : Promise.resolve();
    };
    health.state = 'serving';
    health.depend('store', { required: true, check });
    await eventually(() => expect(health.takesWork()).toBe(true));
    silent = true;
    const before = looks;
    const now = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 300);
    try {
      // Within this turn of the event loop, from the known state. It has started another check.
      expect([health.takesWork(), looks]).toEqual([true, before + 1]);
    } finally {
      now.mockRestore();
    }
    await eventually(() => expect(health.takesWork()).toBe(false));
  });

  it('is 404 for a process that stood still, until it has checked again', async () => {
    health.state = 'serving';
    await eventually(() => expect(health.takesWork()).toBe(true));
    const now = jest.spyOn(performance, 'now');
    const thawedMs = performance.now() + 60_000;
    now.mockReturnValue(thawedMs);
    try {
      expect(health.takesWork()).toBe(false);
      await eventually(() => expect(health.takesWork()).toBe(true));
    } finally {
      now.mockRestore();
    }
  });
});

it('the port serves the metrics of the process, and nothing else', async () => {
  const metrics = await fetch(`${server.url}/metrics?all`);
  expect([metrics.status, metrics.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')]);
  expect((await fetch(`${server.url}/_operator/v1/tenants`)).status).toBe(404);
  expect((await fetch(`${server.url}/livez`, { method: 'POST' })).status).toBe(404);
  expect(await (await fetch(`${server.url}/livez`, { method: 'HEAD' })).text()).toBe('');
});

it('the port requires the token for the metrics if there is one, and for nothing else', async () => {
  const guarded = await HealthServer.listen(health, '127.0.0.1', 0, ['token-of-the-scraper']);
  try {
    const asked = (authorization?: string) =>
      fetch(`${guarded.url}/metrics`, authorization === undefined ? {} : { headers: { authorization } });
    for (const wrong of [undefined, 'Bearer ', 'Bearer token-of-the-scrape', 'Basic token-of-the-scraper'])
      expect((await asked(wrong)).status).toBe(401);
    expect((await asked('Bearer token-of-the-scraper')).status).toBe(200);
    expect((await fetch(`${guarded.url}/livez`)).status).toBe(200);
  } finally {
    await guarded.close();
  }
});

it('a metric counts the callers that send the former token, from 0 on', async () => {
  const guarded = await HealthServer.listen(health, '127.0.0.1', 0, ['token-of-the-scraper', 'former-token-of-it']);
  try {
    const countAfter = async (token: string) => {
      const response = await fetch(`${guarded.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
      return /^tollgate_former_secret_requests_total\{secret="metrics"\} (\d+)$/m.exec(await response.text())?.[1];
    };
    const before = Number(await countAfter('token-of-the-scraper'));
    expect(Number(await countAfter('former-token-of-it'))).toBe(before + 1);
    expect(await countAfter('a-wrong-token')).toBeUndefined();
    expect(Number(await countAfter('token-of-the-scraper'))).toBe(before + 1);
  } finally {
    await guarded.close();
  }
});

it('the start says which setting to change when its port is in use', async () => {
  const port = Number(new URL(server.url).port);
  await expect(HealthServer.listen(health, '127.0.0.1', port)).rejects.toThrow(
    `Port ${port} on 127.0.0.1 is in use: stop what listens there, or set TOLLGATE_HEALTH_PORT (0 = any free port).`,
  );
});
