import { readConfigFile } from '@tollgate/runtime';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wholeConfiguration } from './whole-configuration';

const directory = mkdtempSync(join(tmpdir(), 'whole-configuration-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

const SECRET = 'hush-hush';
/** PEM may have text before its blocks. */
const PEM = `${SECRET}-pem\n${LOCALHOST_CERTIFICATE}`;
const env = { API_KEY: `${SECRET}-key`, TEAM: `${SECRET}-header`, PEM };
const TEXT = `
currency: EUR
budgets: { thresholdsPercent: [10, 90] }
models:
  - id: small
    aliases: [tiny]
    kind: chat
    contextTokens: 100
    clamp: true
    passthrough: [top_k]
    mediaUrls: [example.com]
    routing: prefix
    queue: { maxRequests: 7 }
    price: { input: "0.15", output: "0.60" }
    backends:
      - url: https://one.example/v1
        apiKey: "\${API_KEY}"
        dialect: vllm
        metrics: https://one.example/metrics?token=${SECRET}-query
        headers: { X-Team: "\${TEAM}" }
        tls: { ca: "\${PEM}", certificate: "\${PEM}", key: "file:key.pem", serverName: one.internal }
        health: { path: /health }
      - { url: http://two.example:8000/v1, metrics: http://two.example:8000/metrics, weight: 3 }
plans:
  - id: p
    idempotency: false
    limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }
    profiles:
      - { id: d, usageCost: true, limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 } }
`;

beforeAll(() => {
  writeFileSync(join(directory, 'key.pem'), `${SECRET}-file\n${LOCALHOST_KEY}`);
  writeFileSync(file, TEXT);
});
/** What the browser gets. */
const answered = (values: NodeJS.ProcessEnv | null) => JSON.stringify(wholeConfiguration(readConfigFile(file, values)));

it('shows all of tollgate.yaml with its defaults, and no secret', () => {
  const config = readConfigFile(file, env);
  // The secrets are in memory: this test would find them.
  for (const name of ['key', 'header', 'pem', 'file', 'query'])
    expect(JSON.stringify(config)).toContain(`${SECRET}-${name}`);
  const text = answered(env);
  expect(text).not.toContain(SECRET);
  expect(JSON.parse(text)).toMatchObject({
    currency: 'EUR',
    budgets: { thresholdsPercent: [10, 90] },
    models: [
      {
        id: 'small',
        aliases: ['tiny'],
        clamp: true,
        passthrough: ['top_k'],
        mediaUrls: ['example.com'],
        routing: 'prefix',
        queue: { maxRequests: 7, maxWaitMs: 10_000 },
        price: { input: '0.15', output: '0.60', request: '0' },
        backends: [
          {
            url: 'https://one.example/v1',
            apiKey: '(secret)',
            dialect: 'vllm',
            metrics: 'https://one.example/metrics?(secret)',
            headers: { 'X-Team': '(secret)' },
            tls: { ca: '(secret)', certificate: '(secret)', key: '(secret)', serverName: 'one.internal' },
            health: { path: '/health', intervalMs: 5_000 },
          },
          { url: 'http://two.example:8000/v1', metrics: 'http://two.example:8000/metrics', weight: 3 },
        ],
      },
    ],
    plans: [{ id: 'p', idempotency: false, profiles: [{ id: 'd', usageCost: true }] }],
  });
});

it('leaves nothing out but the values of secrets', () => {
  const config = readConfigFile(file, env);
  const namesIn = (value: unknown): string[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, part]) => [name, ...namesIn(part).map((below) => `${name}.${below}`)])
      : [];
  expect(namesIn(JSON.parse(answered(env))).sort()).toEqual(namesIn(JSON.parse(JSON.stringify(config))).sort());
});

it('a console that reads no secrets shows the rest', () => {
  const text = answered(null);
  expect(text).not.toContain(SECRET);
  expect(JSON.parse(text)).toMatchObject({ models: [{ backends: [{ url: 'https://one.example/v1' }, {}] }] });
  // That of the query, which the file has itself.
  expect(text.split('(secret)')).toHaveLength(2);
});
