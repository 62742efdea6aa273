import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, readConfigFile } from '../index';

const directory = mkdtempSync(join(tmpdir(), 'config-secrets-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

const ENV = { KEY: 's3cret', CERT: LOCALHOST_CERTIFICATE, CERT_KEY: LOCALHOST_KEY, OTHER: 'other' };
const PEM = { certificate: LOCALHOST_CERTIFICATE.trim(), key: LOCALHOST_KEY.trim() };
const KEY_PATH = 'models[0].backends[0].apiKey';
const LIMITS = '{ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }';
/** A file with a model for each of these lines, which give its backends. */
const withBackends = (...lines: string[]) => `
models:
${lines
  .map(
    (line, at) =>
      `  - { id: m${at}, kind: chat, contextTokens: 100, price: { input: "1", output: "1" }, backends: ${line} }`,
  )
  .join('\n')}
plans: [{ id: p, limits: ${LIMITS}, profiles: [{ id: d, limits: ${LIMITS} }] }]
`;

function read(lines: string[], env: NodeJS.ProcessEnv | null = ENV, onMissing?: (reference: string) => void) {
  writeFileSync(file, withBackends(...lines));
  return readConfigFile(file, env, { onMissing }).models.map(({ backends }) => backends);
}

function problemsOf(lines: string[], env: NodeJS.ProcessEnv | null = ENV, onMissing?: (reference: string) => void) {
  try {
    read(lines, env, onMissing);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ path, message }) => [path, message]);
    throw error;
  }
  return [];
}

describe('an anchor that several backends share', () => {
  const [A, B] = ['url: "https://a/v1"', 'url: "https://b/v1"'];
  const tls = '{ certificate: "${CERT}", key: "${CERT_KEY}" }';

  it.each<[string, string[], object]>([
    ['a list of backends', [`&all [{ ${A}, apiKey: "\${KEY}" }]`, '*all'], { apiKey: 's3cret' }],
    ['one whole backend', [`[&one { ${A}, apiKey: "\${KEY}" }]`, '[*one]'], { apiKey: 's3cret' }],
    [
      'the headers',
      [`[{ ${A}, headers: &h { x-a: "\${KEY}" } }]`, `[{ ${B}, headers: *h }]`],
      { headers: { 'x-a': 's3cret' } },
    ],
    ['tls', [`[{ ${A}, tls: &t ${tls} }]`, `[{ ${B}, tls: *t }]`], { tls: PEM }],
  ])('may hold secrets: %s', (_, lines, expected) => {
    for (const [backend] of read(lines)) expect(backend).toMatchObject(expected);
    // A process that calls no backends gets no secret, from no alias.
    expect(JSON.stringify(read(lines, null))).not.toMatch(/s3cret|BEGIN|\$\{/);
    const missing: string[] = [];
    read(lines, {}, (reference) => missing.push(reference));
    expect(new Set(missing)).toEqual(new Set(lines[0]!.match(/\$\{\w+\}/g)));
  });

  it('may not hold a secret that is written out, also where another field of it is a reference', () => {
    const lines = [`[&one { ${A}, apiKey: literal, headers: { x-a: "\${KEY}" } }]`, '[*one]'];
    expect(problemsOf(lines).map(([path]) => path)).toEqual([
      'models[0].backends[0].apiKey',
      'models[1].backends[0].apiKey',
    ]);
    const both = [`[{ ${A}, tls: &t { ca: "\${OTHER}", serverName: literal }, headers: *t }]`];
    expect(problemsOf(both).map(([path]) => path)).toEqual(['models[0].backends[0].headers.serverName']);
  });
});

describe('the key of a backend', () => {
  const lines = ['[{ url: "https://a/v1", apiKey: "${KEY}" }]'];
  const keyOf = (env: NodeJS.ProcessEnv) => read(lines, env)[0]![0]!.apiKey;

  it('is read without the newlines and blanks around it, from the environment and from the file of secrets', () => {
    expect(keyOf({ KEY: ' s3cret\r\n' })).toBe('s3cret');
    const secrets = join(directory, 'secrets.env');
    writeFileSync(secrets, 'KEY="s3cret\n"\n');
    const named = { TOLLGATE_CONFIG_SECRETS_FILE: secrets };
    expect(keyOf(named)).toBe('s3cret');
    // As an empty value, a blank one is none.
    expect(keyOf({ ...named, KEY: ' \n' })).toBe('s3cret');
    expect(problemsOf(lines, { KEY: '\n' })).toEqual([[KEY_PATH, 'the environment variable KEY is not set']]);
  });

  it.each(['s3c\nret', 's3c\u0000ret', 's3c\tret', 's3crét', 's3cret\u2026x', '\u007fs3cret', 's'.repeat(4097)])(
    'is refused by its path, and not shown, if no header can carry it: %j',
    (key) => {
      const message = 'must be a text of 1 to 4,096 printable ASCII characters';
      expect(problemsOf(lines, { KEY: key })).toEqual([[KEY_PATH, message]]);
      writeFileSync(join(directory, 'key'), key);
      expect(problemsOf(['[{ url: "https://a/v1", apiKey: "file:key" }]'])).toEqual([[KEY_PATH, message]]);
    },
  );
});

describe('a certificate and its key', () => {
  const withTls = (tls: string) => [`[{ url: "https://a/v1", tls: ${tls} }]`];
  const together = [['models[0].backends[0].tls', 'must have "certificate" and "key" together']];

  it('are complete where only one of them is here, and each missing one is reported', () => {
    const missing: string[] = [];
    const reported = (reference: string) => missing.push(reference);
    writeFileSync(join(directory, 'gateway.pem'), LOCALHOST_CERTIFICATE);
    const documented = withTls('{ certificate: "file:gateway.pem", key: "${GATEWAY_KEY}" }');
    expect(problemsOf(documented, {}, reported)).toEqual([]);
    expect(problemsOf(withTls('{ certificate: "file:nowhere.pem", key: "${CERT_KEY}" }'), ENV, reported)).toEqual([]);
    expect(missing).toEqual(['${GATEWAY_KEY}', 'file:nowhere.pem']);
  });

  it('are refused if the file names only one, whether or not secrets are here or needed', () => {
    for (const tls of ['{ key: "${KEY}" }', '{ certificate: "${CERT}" }', '{ certificate: "${CERT}", key: }'])
      for (const env of [ENV, null]) expect(problemsOf(withTls(tls), env)).toEqual(together);
    expect(problemsOf(withTls('{ key: "${NOT_HERE}" }'), {}, () => undefined)).toEqual(together);
    const shared = ['[&one { url: "https://a/v1", tls: { key: "${KEY}" } }, *one]'];
    expect(problemsOf(shared, null)).toHaveLength(2);
  });
});
