import { eventually } from '@tollgate/testing';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DecidedConfig, FileConfigSource, metrics } from '../index';

const directory = mkdtempSync(join(tmpdir(), 'config-source-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

const LIMITS = '{ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }';
const inCurrency = (currency: string) => `currency: ${currency}
models:
  - id: m
    kind: chat
    contextTokens: 100
    price: { input: "0.15", output: "0.60" }
    backends: [{ url: "https://x/v1", apiKey: "\${KEY}" }]
plans: [{ id: p, limits: ${LIMITS}, profiles: [{ id: d, limits: ${LIMITS} }] }]
`;

const sources: FileConfigSource[] = [];
afterEach(() => {
  for (const source of sources.splice(0)) source.close();
});
function open(decided?: DecidedConfig, pollMs = 20): FileConfigSource {
  const source = new FileConfigSource(file, { KEY: 's3cret' }, pollMs, decided);
  sources.push(source);
  return source;
}
/** As it reaches another process. */
const sent = ({ decided }: FileConfigSource) => JSON.parse(JSON.stringify(decided)) as DecidedConfig;

async function refusals(): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_config_reloads_total')!.get();
  return values.find(({ labels }) => labels['result'] === 'refused')?.value ?? 0;
}

describe('a process that begins with the configuration of another one', () => {
  it('has all of it, and begins where the file is one that was refused', async () => {
    writeFileSync(file, inCurrency('EUR'));
    const first = open();
    const before = await refusals();
    writeFileSync(file, 'models: [');
    await eventually(async () => expect(await refusals()).toBe(before + 1));
    const second = open(sent(first));
    expect(JSON.stringify(second.current)).toBe(JSON.stringify(first.current));
    // The refused version is not looked at again.
    await second.refresh();
    expect(await refusals()).toBe(before + 1);
    writeFileSync(file, inCurrency('GBP'));
    await eventually(() => expect([first, second].map(({ current }) => current.currency)).toEqual(['GBP', 'GBP']));
  });

  it('reads a version that the other one has not seen yet, and asks its own checks', async () => {
    writeFileSync(file, inCurrency('EUR'));
    const decided = sent(open());
    // Of another size: two versions within the resolution of the clock have the same time.
    writeFileSync(file, `${inCurrency('GBP')}\n`);
    const second = open(decided);
    second.addCheck(async ({ currency }) => (currency === 'GBP' ? ['no pounds'] : []));
    expect(second.current.currency).toBe('EUR');
    const before = await refusals();
    await second.refresh();
    expect(await refusals()).toBe(before + 1);
    expect(second.current.currency).toBe('EUR');
  });
});

describe('a secret in a file of its own', () => {
  const late = join(directory, 'late.key');
  const keyOf = ({ current }: FileConfigSource) => current.models[0]!.backends[0]!.apiKey;
  const withKeyFile = (currency: string) => inCurrency(currency).replace('${KEY}', 'file:late.key');

  it('that comes after the configuration leaves all processes with the same version', async () => {
    writeFileSync(file, inCurrency('EUR'));
    const [early, other] = [open(), open(undefined, 60_000)];
    rmSync(late, { force: true });
    writeFileSync(file, withKeyFile('GBP'));
    const before = await refusals();
    await early.refresh();
    expect([early.current.currency, await refusals()]).toEqual(['EUR', before + 1]);
    writeFileSync(late, 'first');
    await other.refresh();
    expect([other.current.currency, keyOf(other)]).toEqual(['GBP', 'first']);
    await eventually(() => expect([early.current.currency, keyOf(early)]).toEqual(['GBP', 'first']));
  });

  it('is read again when it changes, also by a process that begins with what another one decided', async () => {
    writeFileSync(late, 'first');
    writeFileSync(file, withKeyFile('EUR'));
    const first = open();
    const second = open(sent(first));
    const third = open(sent(second));
    writeFileSync(late, 'the second');
    const all = [first, second, third];
    await eventually(() => expect(all.map(keyOf)).toEqual(all.map(() => 'the second')));
    const read = all.map(({ current }) => current);
    await Promise.all(all.map((source) => source.refresh()));
    expect(all.map(({ current }, at) => current === read[at])).toEqual([true, true, true]);
  });
});

describe('a file that this user may not read', () => {
  const cure = 'give the user of this process the right to read it, and to enter the folders above it';
  const isRoot = process.getuid!() === 0;
  /** As a user without rights on the files of others: root may read everything. */
  function unprivileged(work: () => void): void {
    if (isRoot) process.seteuid!('nobody');
    try {
      work();
    } finally {
      if (isRoot) process.seteuid!(0);
    }
  }
  const locked = join(directory, 'locked');
  beforeAll(() => {
    chmodSync(directory, 0o755);
    mkdirSync(locked, { mode: 0 });
  });
  afterAll(() => chmodSync(locked, 0o700));

  it('is named with the cure, be it the configuration, its secrets or one of them', () => {
    unprivileged(() => {
      const hidden = join(locked, 'tollgate.yaml');
      expect(() => new FileConfigSource(hidden, {})).toThrow(
        expect.objectContaining({
          name: 'ConfigError',
          message: `${hidden}: cannot be read (its permissions do not allow it): ${cure}`,
        }),
      );
    });
    writeFileSync(file, inCurrency('EUR').replace('${KEY}', 'file:locked/key'));
    const secrets = join(locked, 'secrets.env');
    unprivileged(() => {
      const message = `: the file cannot be read (its permissions do not allow it): ${cure}`;
      expect(() => open()).toThrow(expect.objectContaining({ message: expect.stringContaining(message) }));
      const named = { TOLLGATE_CONFIG_SECRETS_FILE: secrets };
      expect(() => new FileConfigSource(file, named)).toThrow(
        `TOLLGATE_CONFIG_SECRETS_FILE: ${secrets} cannot be read (its permissions do not allow it): ${cure}`,
      );
    });
  });

  it('is refused when it takes the place of one that was read, once', async () => {
    rmSync(file);
    writeFileSync(file, inCurrency('EUR'));
    const source = open();
    const before = await refusals();
    rmSync(file);
    // A loop of links cannot be looked at by anybody, root included.
    symlinkSync(file, file);
    await eventually(async () => expect(await refusals()).toBe(before + 1));
    await source.refresh();
    expect(await refusals()).toBe(before + 1);
    expect(source.current.currency).toBe('EUR');
    rmSync(file);
    writeFileSync(file, inCurrency('GBP'));
    await eventually(() => expect(source.current.currency).toBe('GBP'));
  });
});
