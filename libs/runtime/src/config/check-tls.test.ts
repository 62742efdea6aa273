import { eventually, LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, FileConfigSource, metrics, readConfigFile } from '../index';

const directory = mkdtempSync(join(tmpdir(), 'check-tls-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

const TLS = 'models[0].backends[0].tls';
const LIMITS = '{ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }';
const withTls = (tls: string) => `models:
  - id: m
    kind: chat
    contextTokens: 100
    price: { input: "1", output: "1" }
    backends:
      - url: https://host/v1
        tls: ${tls}
plans: [{ id: p, limits: ${LIMITS}, profiles: [{ id: d, limits: ${LIMITS} }] }]
`;
const PAIR = '{ certificate: "${CERT}", key: "${KEY}" }';
const GOOD = { CERT: LOCALHOST_CERTIFICATE, KEY: LOCALHOST_KEY };

const pem = { format: 'pem' } as const;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const RSA_KEY = rsa.export({ type: 'pkcs8', ...pem }) as string;
const LOCKED_KEY = rsa.export({ type: 'pkcs8', ...pem, cipher: 'aes-256-cbc', passphrase: 'x' }) as string;
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const OTHER_KEY = ec.export({ type: 'sec1', ...pem }) as string;
/** A block of PEM that has no certificate in it. */
const BROKEN = LOCALHOST_CERTIFICATE.replace('MII', 'AAA');
const CUT = LOCALHOST_CERTIFICATE.slice(0, 400);

function problemsOf(tls: string, env: NodeJS.ProcessEnv | null, onMissing?: (reference: string) => void) {
  writeFileSync(file, withTls(tls));
  try {
    readConfigFile(file, env, { onMissing });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Neither a line of a text nor a part of one.
    expect(error.message).not.toMatch(/BEGIN|[A-Za-z0-9+/]{24}/);
    return error.problems.map(({ path, message, line }) => [path, message, line]);
  }
  return [];
}

describe('the PEM texts of a backend', () => {
  it.each([
    ['from variables', PAIR, GOOD],
    ['with other newlines', PAIR, { CERT: GOOD.CERT.replaceAll('\n', '\r\n'), KEY: ` ${GOOD.KEY} ` }],
    ['with a chain', PAIR, { ...GOOD, CERT: `server:\n${GOOD.CERT}\nchain:\n${GOOD.CERT}` }],
    ['in one file', '{ certificate: "file:both.pem", key: "file:both.pem" }', {}],
    ['without an authority', '{ serverName: host }', {}],
    ['with several authorities', '{ ca: "${CERT}" }', { CERT: `first\n${GOOD.CERT}\nsecond\n${GOOD.CERT}` }],
  ])('are accepted %s', (_, tls, env) => {
    writeFileSync(join(directory, 'both.pem'), GOOD.KEY + GOOD.CERT);
    expect(problemsOf(tls, env)).toEqual([]);
  });

  it.each([
    ['none', 'none', /certificate, and then its chain if it has one \(OpenSSL: no start line\)$/],
    ['a key', LOCALHOST_KEY, /\(OpenSSL: no start line\)$/],
    ['cut off', CUT, /\(OpenSSL: .+\)$/],
    ['followed by a chain that cannot be read', GOOD.CERT + BROKEN, /\(OpenSSL: .+\)$/],
  ])('are refused with a certificate that is %s', (_, CERT, message) => {
    expect(problemsOf(PAIR, { ...GOOD, CERT })).toEqual([[`${TLS}.certificate`, expect.stringMatching(message), 8]]);
  });

  it.each([
    ['no key', 'none'],
    ['a certificate', LOCALHOST_CERTIFICATE],
    ['cut off', LOCALHOST_KEY.slice(0, 100)],
    ['locked by a passphrase', LOCKED_KEY],
  ])('are refused with a key that is %s', (_, KEY) => {
    const message = 'must be a text in PEM with a private key that needs no passphrase: it cannot be read';
    expect(problemsOf(PAIR, { ...GOOD, KEY })).toEqual([[`${TLS}.key`, message, 8]]);
    writeFileSync(join(directory, 'key.pem'), KEY);
    const fromFile = '{ certificate: "${CERT}", key: "file:key.pem" }';
    expect(problemsOf(fromFile, GOOD)).toEqual([[`${TLS}.key`, message, 8]]);
  });

  it.each([
    ['the key of another certificate', OTHER_KEY],
    ['a key of another type', RSA_KEY],
  ])('are refused with %s', (_, KEY) => {
    const message = expect.stringMatching(/^must have the key of its certificate.*do not belong together$/);
    expect(problemsOf(PAIR, { ...GOOD, KEY })).toEqual([[TLS, message, 8]]);
  });

  it.each([
    ['none', 'none', 'must be a text in PEM with at least one certificate: it has none'],
    ['a key', LOCALHOST_KEY, 'must be a text in PEM with at least one certificate: it has none'],
    ['one that cannot be read', BROKEN, 'must be a text in PEM with certificates: number 1 cannot be read'],
    [
      'a second one that is cut off',
      GOOD.CERT + CUT,
      'must be a text in PEM with certificates: number 2 cannot be read',
    ],
  ])('are refused with authorities that are %s', (_, CA, message) => {
    expect(problemsOf('{ ca: "${CA}" }', { CA })).toEqual([[`${TLS}.ca`, message, 8]]);
  });

  it('are not checked where they are not needed, and those that are here are checked alone', () => {
    const missing: string[] = [];
    const reported = (reference: string) => missing.push(reference);
    expect(problemsOf(PAIR, null)).toEqual([]);
    expect(problemsOf(PAIR, { CERT: GOOD.CERT }, reported)).toEqual([]);
    expect(problemsOf(PAIR, { KEY: 'none' }, reported)).toEqual([[`${TLS}.key`, expect.any(String), 8]]);
    expect(missing).toEqual(['${KEY}', '${CERT}']);
  });

  it('leave the former version in force if a new one is unusable', async () => {
    const secrets = join(directory, 'secrets.env');
    const write = (key: string) => writeFileSync(secrets, `CERT="${GOOD.CERT}"\nKEY="${key}"\n`);
    const refused = async () => {
      const { values } = await metrics.getSingleMetric('tollgate_config_reloads_total')!.get();
      return values.find(({ labels }) => labels['result'] === 'refused')?.value ?? 0;
    };
    write(GOOD.KEY);
    writeFileSync(file, withTls(PAIR));
    const source = new FileConfigSource(file, { TOLLGATE_CONFIG_SECRETS_FILE: secrets }, 20);
    const before = [source.current, await refused()] as const;
    try {
      write(OTHER_KEY);
      await eventually(async () => expect(await refused()).toBe(before[1] + 1));
      expect(source.current).toBe(before[0]);
      write(`${GOOD.KEY}\n\n`);
      await eventually(() => expect(source.current).not.toBe(before[0]));
      expect(source.current.models[0]!.backends[0]!.tls!.key).toBe(GOOD.KEY.trim());
    } finally {
      source.close();
    }
  });
});
