import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@tollgate/testing';
import { ConfigError, FileConfigSource, metrics, readConfigFile } from '../index';

const directory = mkdtempSync(join(tmpdir(), 'config-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

const GOOD = `
models:
  - id: m
    kind: chat
    contextTokens: 100
    maxOutputTokens: 50
    price: { input: "0.15", output: "0.60" }
    backends: [{ url: "simulator:" }]
plans:
  - id: p
    limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }
    profiles: [{ id: d, limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 } }]
`;

function read(text: string, env: NodeJS.ProcessEnv = {}) {
  writeFileSync(file, text);
  return readConfigFile(file, env);
}

function problemsOf(text: string, env: NodeJS.ProcessEnv = {}) {
  try {
    read(text, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error('accepted');
}

async function reloads(result: string): Promise<number | undefined> {
  const { values } = await metrics.getSingleMetric('tollgate_config_reloads_total')!.get();
  return values.find(({ labels }) => labels['result'] === result)?.value;
}

describe('tollgate.yaml', () => {
  it('is read with its defaults', () => {
    const config = read(GOOD);
    expect(config.currency).toBe('USD');
    expect(config.models[0]).toMatchObject({
      id: 'm',
      ownedBy: 'tollgate',
      tokenizer: 'o200k_base',
      price: { input: '0.15', request: '0' },
    });
    expect(config.models[0]!.backends[0]).toMatchObject({ url: 'simulator:', weight: 1 });
    expect(config.plans[0]!.profiles[0]).toMatchObject({ models: ['*'], monthlyBudgetCents: null });
  });

  it.each([
    ['a model without a price', GOOD.replace(/ {4}price.*\n/, ''), 'models[0].price', 3],
    ['a price as a number', GOOD.replace('"0.15"', '0.15'), 'models[0].price.input', 7],
    ['a negative price', GOOD.replace('"0.15"', '"-1"'), 'models[0].price.input', 7],
    ['an unknown field', GOOD.replace('kind: chat', 'kind: chat\n    colour: red'), 'models[0].colour', 5],
    ['an unknown field at the top', `${GOOD}\nmoods: []`, 'moods', 14],
    ['a kind that does not exist', GOOD.replace('kind: chat', 'kind: video'), 'models[0].kind', 4],
    [
      'more output than context',
      GOOD.replace('maxOutputTokens: 50', 'maxOutputTokens: 500'),
      'models[0].maxOutputTokens',
      6,
    ],
    [
      'a maximum for videos where a backend takes none',
      GOOD.replace('kind: chat', 'kind: chat\n    maxTokensPerVideo: 5').replace(
        'url: "simulator:"',
        'url: "http://x/v1", dialect: ollama',
      ),
      'models[0].maxTokensPerVideo',
      5,
    ],
    ...[
      'ftp://x',
      'http://127.0.0.1:80000/v1',
      'http:///v1',
      'http:x/v1',
      'https://user:word@x/v1',
      'http://x/v1?key=1',
      'http://x/v1#a',
      'http://[::1/v1',
    ].map((url): [string, string, string, number] => [
      `a backend at ${url}`,
      GOOD.replace('simulator:', url),
      'models[0].backends[0].url',
      8,
    ]),
    [
      'a profile with an unknown model',
      GOOD.replace('{ id: d,', '{ id: d, models: ["zz"],'),
      'plans[0].profiles[0].models[0]',
      12,
    ],
    [
      'a limit of zero',
      GOOD.replace('requestsPerMinute: 1', 'requestsPerMinute: 0'),
      'plans[0].limits.requestsPerMinute',
      11,
    ],
    ...['[]', '[0]', '[101]', '[50, 50]', '[80, 50]', '50', '["50"]', '[1.5]'].map(
      (percents): [string, string, string, number] => [
        `thresholds of ${percents}`,
        `${GOOD}\nbudgets: { thresholdsPercent: ${percents} }`,
        'budgets.thresholdsPercent',
        14,
      ],
    ),
    [
      'a negative budget of a plan',
      GOOD.replace('  - id: p', '  - id: p\n    monthlyBudgetCents: -1'),
      'plans[0].monthlyBudgetCents',
      11,
    ],
    ['no plans', GOOD.replace(/plans:[\s\S]*/, ''), 'plans', undefined],
  ])('refuses %s by path and line', (_name, text, path, line) => {
    expect(problemsOf(text)).toContainEqual(expect.objectContaining({ path, ...(line === undefined ? {} : { line }) }));
  });

  it('refuses an alias that names another model, or that is no name', () => {
    const second = GOOD.replace(
      'plans:',
      GOOD.slice(9, GOOD.indexOf('plans:')).replace('- id: m', '- id: n') + 'plans:',
    );
    const named = (aliases: string) => problemsOf(second.replace('- id: n', `- id: n\n    aliases: ${aliases}`));
    expect(named('[x, m]')).toEqual([
      { path: 'models[1].aliases[1]', message: '"m" is already a name of "m"', line: expect.any(Number) },
    ]);
    expect(named('[n]')[0]).toMatchObject({ path: 'models[1].aliases[0]', message: '"n" is already a name of "n"' });
    for (const aliases of ['["a b"]', '[""]', '[7]'])
      expect(named(aliases)[0]).toMatchObject({ path: 'models[1].aliases[0]' });
    expect(named('x')[0]).toMatchObject({ path: 'models[1].aliases' });
    expect(named('[x, y, x]')[0]).toMatchObject({ path: 'models[1].aliases[2]' });
  });

  it('refuses a fallback that is unknown, the same model, no chat model, or counts prompts otherwise', () => {
    const second = GOOD.replace(
      'plans:',
      GOOD.slice(9, GOOD.indexOf('plans:')).replace('- id: m', '- id: n') + 'plans:',
    );
    const problems = (fallback: string, of = second) =>
      problemsOf(of.replace('- id: n', `- id: n\n    fallback: ${fallback}`));
    const path = 'models[1].fallback[0]';
    expect(() => problems('[m]')).toThrow('accepted');
    expect(problems('[x]')).toMatchObject([{ path, message: 'there is no model "x"' }]);
    expect(problems('[n]')).toMatchObject([{ path, message: 'must be another model' }]);
    const embedding = second.replace('kind: chat', 'kind: embedding');
    expect(problems('[m]', embedding)).toMatchObject([{ path, message: 'is only for chat models' }]);
    const other = second.replace('- id: m', '- id: m\n    tokenizer: cl100k_base');
    expect(problems('[m]', other)).toMatchObject([{ path, message: '"m" must have the same tokenizer' }]);
    const video = second.replace('- id: m', '- id: m\n    maxTokensPerVideo: 5');
    expect(problems('[m]', video)).toMatchObject([{ path, message: '"m" must have the same maxTokensPerVideo' }]);
    for (const wrong of ['7', '[a, b, c, d]']) expect(problems(wrong)[0]).toMatchObject({ path: 'models[1].fallback' });
    expect(problems('[7]')[0]).toMatchObject({ path });
    expect(problems('[m, m]')[0]).toMatchObject({ path: 'models[1].fallback[1]' });
  });

  it('names a repeated id and a missing list', () => {
    const [model = ''] = / {2}- id: m[\s\S]*?(?=plans:)/.exec(GOOD) ?? [];
    const messages = (text: string) => problemsOf(text).map(({ message }) => message);
    expect(messages(GOOD.replace(model, model + model))).toEqual(['"m" must not be given twice']);
    expect(messages(GOOD.replace(/plans:[\s\S]*/, ''))).toEqual(['is missing: it must be a list of at least one plan']);
  });

  it('names every problem at once, and broken YAML by its line', () => {
    expect(problemsOf(GOOD.replace('"0.15"', '1').replace('"0.60"', '2')).map((problem) => problem.path)).toEqual([
      'models[0].price.input',
      'models[0].price.output',
    ]);
    expect(problemsOf('models:\n  - id: [\n')[0]).toMatchObject({ path: '', line: expect.any(Number) });
    expect(problemsOf('just text')[0]!.message).toMatch(/mapping/);
    expect(problemsOf('models: *nowhere\n')[0]!.message).toMatch(/nowhere/);
  });

  it('accepts secrets only by reference, and never shows one', () => {
    const withKey = (value: string) =>
      GOOD.replace('{ url: "simulator:" }', `{ url: "http://x/v1", apiKey: "${value}" }`);
    expect(read(withKey('${MY_KEY}'), { MY_KEY: 's3cret' }).models[0]!.backends[0]!.apiKey).toBe('s3cret');
    writeFileSync(join(directory, 'key'), 'from-file\n');
    expect(read(withKey('file:key')).models[0]!.backends[0]!.apiKey).toBe('from-file');
    expect(problemsOf(withKey('${MISSING}'))[0]!.message).toMatch(/MISSING is not set/);
    const literal = problemsOf(withKey('sk-literal-secret'));
    expect(JSON.stringify(literal)).not.toContain('sk-literal-secret');
    expect(literal[0]!.path).toBe('models[0].backends[0].apiKey');
  });

  it('accepts secrets from a file too, prefers the environment, and never shows one', () => {
    const secrets = join(directory, 'secrets.env');
    const withKey = GOOD.replace('{ url: "simulator:" }', '{ url: "http://x/v1", apiKey: "${MY_KEY}" }');
    writeFileSync(secrets, `# comment\nMY_KEY='s3 "cr$t'\nOTHER=hidden\n`);
    const env = { TOLLGATE_CONFIG_SECRETS_FILE: secrets };
    const keyOf = (given: NodeJS.ProcessEnv | null) => readConfigFile(file, given).models[0]!.backends[0]!.apiKey;
    expect(read(withKey, env).models[0]!.backends[0]!.apiKey).toBe('s3 "cr$t');
    expect(keyOf({ ...env, MY_KEY: 'given' })).toBe('given');
    // A process that calls no backends needs no secret, and gets none.
    expect(keyOf(null)).toBeUndefined();
    const missing = problemsOf(withKey.replace('MY_KEY', 'MISSING'), env);
    expect(missing).toEqual([
      expect.objectContaining({
        message: `MISSING is set neither in the environment nor in ${secrets} (TOLLGATE_CONFIG_SECRETS_FILE)`,
      }),
    ]);
    expect(JSON.stringify(missing)).not.toMatch(/hidden|s3/);
    const nowhere = join(directory, 'nowhere');
    expect(problemsOf(withKey, { TOLLGATE_CONFIG_SECRETS_FILE: nowhere })[0]!.message).toBe(
      `TOLLGATE_CONFIG_SECRETS_FILE: ${nowhere} cannot be read (there is no such file or directory)`,
    );
  });

  it('is read again when its file of secrets changes', async () => {
    const secrets = join(directory, 'rotated.env');
    writeFileSync(secrets, 'MY_KEY=first\n');
    writeFileSync(file, GOOD.replace('{ url: "simulator:" }', '{ url: "http://x/v1", apiKey: "${MY_KEY}" }'));
    const source = new FileConfigSource(file, { TOLLGATE_CONFIG_SECRETS_FILE: secrets }, 20);
    const key = () => source.current.models[0]!.backends[0]!.apiKey;
    try {
      expect(key()).toBe('first');
      writeFileSync(secrets, 'MY_KEY=the-second\n');
      await eventually(() => expect(key()).toBe('the-second'));
    } finally {
      source.close();
    }
  });

  it('is read again when it changes; a broken version is refused and the old one stays in force', async () => {
    writeFileSync(file, GOOD);
    const source = new FileConfigSource(file, {}, 20);
    try {
      const seen: string[] = [];
      source.onChange((config) => seen.push(config.currency));
      writeFileSync(file, `currency: EUR\n${GOOD}`);
      await eventually(() => expect(seen).toEqual(['EUR']));
      writeFileSync(file, `currency: nonsense!\n${GOOD}`);
      await eventually(async () => expect(await reloads('refused')).toBe(1));
      expect(source.current.currency).toBe('EUR');
      writeFileSync(file, `currency: GBP\n${GOOD}\n`);
      await eventually(() => expect(source.current.currency).toBe('GBP'));
    } finally {
      source.close();
    }
  });

  it('is read again when a ConfigMap replaces its folder, also by one with the same size and time', async () => {
    // As the kubelet does it: the file is a link into `..data`, which is a link to a folder that is replaced in one
    // step.
    const mount = mkdtempSync(join(directory, 'mount-'));
    const put = (version: string, text: string) => {
      mkdirSync(join(mount, version));
      writeFileSync(join(mount, version, 'tollgate.yaml'), text);
      utimesSync(join(mount, version, 'tollgate.yaml'), 1, 1);
      symlinkSync(version, join(mount, '..data_tmp'));
      renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
    };
    put('..1', `currency: EUR\n${GOOD}`);
    symlinkSync('..data/tollgate.yaml', join(mount, 'tollgate.yaml'));
    const source = new FileConfigSource(join(mount, 'tollgate.yaml'), {}, 20);
    try {
      expect(source.current.currency).toBe('EUR');
      put('..2', `currency: GBP\n${GOOD}`);
      rmSync(join(mount, '..1'), { recursive: true });
      await eventually(() => expect(source.current.currency).toBe('GBP'));
    } finally {
      source.close();
    }
  });

  it('is refused while a check finds a problem, and waits while a check has no result', async () => {
    writeFileSync(file, GOOD);
    const source = new FileConfigSource(file, {}, 20);
    const refused = (await reloads('refused')) ?? 0;
    let answer: () => Promise<string[]> = async () => ['it is in use'];
    let asked = 0;
    source.addCheck((next) => {
      asked++;
      expect(next.currency).not.toBe(source.current.currency);
      return answer();
    });
    try {
      writeFileSync(file, `currency: EUR\n${GOOD}`);
      await eventually(async () => expect(await reloads('refused')).toBe(refused + 1));
      answer = () => Promise.reject(new Error('the database is down'));
      writeFileSync(file, `currency: GBP\n${GOOD}`);
      await eventually(() => expect(asked).toBeGreaterThan(3));
      expect(source.current.currency).toBe('USD');
      answer = async () => [];
      await eventually(() => expect(source.current.currency).toBe('GBP'));
      expect(await reloads('refused')).toBe(refused + 1);
    } finally {
      source.close();
    }
  });
});
