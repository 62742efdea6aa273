import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { type BackendConfig, ConfigError, readConfigFile } from '../index';

const directory = mkdtempSync(join(tmpdir(), 'backend-config-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

function read(backend: object, model: object = {}, env: NodeJS.ProcessEnv | null = {}) {
  const limits = { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 };
  const whole = {
    models: [
      {
        id: 'm',
        kind: 'chat',
        contextTokens: 100,
        price: { input: '1', output: '1' },
        backends: [{ url: 'https://host/v1', ...backend }],
        ...model,
      },
    ],
    plans: [{ id: 'p', limits, profiles: [{ id: 'd', limits }] }],
  };
  writeFileSync(file, JSON.stringify(whole));
  return readConfigFile(file, env).models[0]!;
}

function problemsOf(backend: object, model: object = {}, env: NodeJS.ProcessEnv = {}) {
  try {
    read(backend, model, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ path }) => path.replace('models[0].', ''));
    throw error;
  }
  throw new Error('accepted');
}

describe('a backend in tollgate.yaml', () => {
  it('has a weight of 1, no limits of its own, and a queue of its model', () => {
    const { queue, backends } = read({});
    expect(queue).toEqual({ maxRequests: 100, maxWaitMs: 10_000 });
    const { weight, maxConcurrency, timeouts, health, tls, headers } = backends[0]!;
    expect([weight, maxConcurrency, timeouts, health, tls, headers]).toEqual([1, ...Array<undefined>(5)]);
  });

  it('may have all that its calls need', () => {
    writeFileSync(join(directory, 'ca.pem'), LOCALHOST_CERTIFICATE);
    const [certificate, key] = [LOCALHOST_CERTIFICATE.trim(), LOCALHOST_KEY.trim()];
    const full = {
      weight: 0,
      maxConcurrency: 8,
      timeouts: { connectMs: 500, firstByteMs: 60_000, idleMs: 20_000, totalMs: 300_000 },
      health: { path: '/health' },
      tls: { ca: 'file:ca.pem', certificate: '${CERT}', key: '${KEY}', serverName: 'gpu.internal' },
      headers: { 'X-Team': '${TEAM}' },
    };
    const env = { CERT: certificate, KEY: key, TEAM: 'red' };
    const backend = read(full, { queue: { maxRequests: 0 } }, env).backends[0]!;
    expect(backend).toMatchObject({
      ...full,
      health: { path: '/health', intervalMs: 5_000 },
      tls: { ca: certificate, certificate, key, serverName: 'gpu.internal' },
      headers: { 'X-Team': 'red' },
    });
    expect(read({ health: false }).backends[0]!.health).toBe(false);
    // A process that calls no backends gets no secret.
    const bare: BackendConfig = read(full, {}, null).backends[0]!;
    expect([bare.headers, bare.tls?.key, bare.tls?.serverName]).toEqual([undefined, undefined, 'gpu.internal']);
  });

  it.each<[string, object, string]>([
    ['a negative weight', { weight: -1 }, 'backends[0].weight'],
    ['no place at all', { maxConcurrency: 0 }, 'backends[0].maxConcurrency'],
    ['an unknown timeout', { timeouts: { connect: 5 } }, 'backends[0].timeouts.connect'],
    ['a timeout that is no number', { timeouts: { idleMs: '5s' } }, 'backends[0].timeouts.idleMs'],
    ['timeouts that are no mapping', { timeouts: 5 }, 'backends[0].timeouts'],
    ['a health path of another host', { health: { path: 'http://x/' } }, 'backends[0].health.path'],
    ['a health path that may be another host', { health: { path: '//x/' } }, 'backends[0].health.path'],
    ['a health path that is not ASCII', { health: { path: '/santé' } }, 'backends[0].health.path'],
    ['a health path beyond Latin-1', { health: { path: '/健康' } }, 'backends[0].health.path'],
    ['a health path with a backslash', { health: { path: '/\\x/' } }, 'backends[0].health.path'],
    ['port 0', { url: 'http://host:0/v1' }, 'backends[0].url'],
    ['metrics at port 0', { metrics: 'http://host:0/metrics' }, 'backends[0].metrics'],
    ['a health check without a path', { health: true }, 'backends[0].health'],
    ['a secret header', { headers: { 'x-a': 'literal' } }, 'backends[0].headers.x-a'],
    ['a header of ours', { headers: { Authorization: '${A}' } }, 'backends[0].headers'],
    ['a header that breaks the line', { headers: { 'x-a': '${LINES}' } }, 'backends[0].headers'],
    ['a key in the file', { tls: { key: 'PEM', certificate: '${A}' } }, 'backends[0].tls.key'],
    ['a certificate without its key', { tls: { certificate: '${A}' } }, 'backends[0].tls'],
    ['TLS for http:', { url: 'http://host/v1', tls: { ca: '${CA}' } }, 'backends[0].tls'],
  ])('is refused with %s', (_, backend, path) =>
    expect(problemsOf(backend, {}, { A: 'a', LINES: 'a\nb', CA: LOCALHOST_CERTIFICATE })).toEqual([path]),
  );

  it('is refused with a queue that nobody would wait in', () => {
    expect(problemsOf({}, { queue: { maxWaitMs: 0 } })).toEqual(['queue.maxWaitMs']);
  });
});
