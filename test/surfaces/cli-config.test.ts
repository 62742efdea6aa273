import { hashCredential, newId } from '@tollgate/contracts';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useServices } from './services';
import { runTollgate, useDataDirectory, withServer } from './tollgate-process';

// Each command is a process.
const services = useServices();
const directory = useDataDirectory(services);
const tollgate = (args: string[], env: Record<string, string> = {}) =>
  runTollgate(args, { TOLLGATE_DATA_DIR: directory.path, ...env });

describe('config check', () => {
  it('accepts the shipped configuration, without a server', async () => {
    const { code, stdout } = await tollgate(['config', 'check', '--json'], { TOLLGATE_DATA_DIR: '/nowhere' });
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({
        ...{ ok: true, file: 'tollgate.yaml', problems: [], asked: false },
        notes: [expect.stringMatching(/^no running Tollgate was asked: none was found \(set TOLLGATE_DATA_DIR/)],
      }),
    ]);
  });

  it('names every wrong field by path and line, and fails', async () => {
    const file = join(directory.path, 'wrong.yaml');
    writeFileSync(file, 'currency: usd\nunknown: 1\nmodels: []\nplans: []\n');
    const plain = await tollgate(['config', 'check', file]);
    expect([plain.code, plain.stdout]).toEqual([1, '']);
    for (const path of ['1: currency', '2: unknown', '3: models', '4: plans'])
      expect(plain.stderr).toContain(`${file}:${path}`);
    const { code, stdout } = await tollgate(['config', 'check', '--json'], { TOLLGATE_CONFIG: file });
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      { ok: false, problems: expect.arrayContaining([expect.objectContaining({ path: 'unknown', line: 2 })]) },
    ]);
    const none = await tollgate(['config', 'check', join(directory.path, 'none.yaml')]);
    expect([none.code, none.stderr]).toEqual([1, expect.stringMatching(/none\.yaml: cannot be read \(ENOENT\)\n$/)]);
    const wrong = await tollgate(['config', 'check'], { TOLLGATE_CONFIG: '/nowhere.yaml' });
    expect([wrong.code, wrong.stderr]).toEqual([
      1,
      '/nowhere.yaml: cannot be read (ENOENT)\nName the file, or set TOLLGATE_CONFIG to it.\n',
    ]);
  });

  it('names the second of two equal ids, checks a file without its secrets, and says what it derives', async () => {
    const model = (more: string) =>
      `  - { id: m, kind: chat, contextTokens: 2048, price: { input: "1", output: "1" }, backends: [${more}] }\n`;
    const backend = '{ url: "http://gpu/v1", apiKey: "${NOT_HERE}" }';
    const limits = '{ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }';
    const plans = `plans:\n  - { id: p, limits: ${limits}, profiles: [{ id: d, models: ["*"], limits: ${limits} }] }\n`;
    const file = join(directory.path, 'fleet.yaml');
    writeFileSync(file, `currency: USD\nmodels:\n${model(backend)}${model(backend)}${plans}`);
    const twice = await tollgate(['config', 'check', file, '--allow-missing-env']);
    expect([twice.code, twice.stderr]).toEqual([
      1,
      expect.stringMatching(/fleet\.yaml:4: models\[1\]\.id: "m" must not be given twice/),
    ]);
    const others = model(backend).replace('id: m', 'id: n');
    writeFileSync(file, `currency: USD\nmodels:\n${model(backend)}${others}${plans}`);
    const refused = await tollgate(['config', 'check', file]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/NOT_HERE is not set\n.*--allow-missing-env/),
    ]);
    const { code, stdout } = await tollgate(['config', 'check', file, '--allow-missing-env', '--json']);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { ok: true, models: ['m', 'n'] }]);
    expect(JSON.parse(stdout).notes).toEqual([
      expect.stringMatching(/^the running Tollgate at http\S+ would accept it$/),
      expect.stringMatching(/^without maxOutputTokens .*: m \(2048 tokens\), n \(2048 tokens\)$/),
      '${NOT_HERE} is not here, and was not checked',
    ]);
  });
});

it('config check says what a running Tollgate would refuse, and asks none with --no-server', async () => {
  const { tenantId } = await services.tenant();
  await services.messages.request('auth.keys.create', {
    ...{ tenantId, name: 'in use', hash: hashCredential(newId('msg')), last4: 'test' },
  });
  const shipped = readFileSync(join(__dirname, '../../tollgate.yaml'), 'utf8');
  const file = join(directory.path, 'renamed.yaml');
  writeFileSync(file, shipped.replace('      - id: default\n', '      - id: other\n'));
  const refused = await tollgate(['config', 'check', file, '--json']);
  expect([refused.code, JSON.parse(refused.stdout)]).toMatchObject([
    1,
    { ok: false, problems: [{ message: expect.stringMatching(/would refuse it: .*profile default of plan default/) }] },
  ]);
  const alone = await tollgate(['config', 'check', file, '--no-server', '--json']);
  expect([alone.code, JSON.parse(alone.stdout)]).toMatchObject([0, { asked: false, notes: [] }]);
  const asked = await tollgate(['config', 'check', 'tollgate.yaml', '--json']);
  expect([asked.code, JSON.parse(asked.stdout)]).toMatchObject([
    0,
    { asked: true, notes: [`the running Tollgate at ${services.operatorUrl} would accept it`] },
  ]);
  const closed = {
    TOLLGATE_OPERATOR_URL: await withServer('', (url) => Promise.resolve(url)),
    TOLLGATE_OPERATOR_SECRET: 'x',
  };
  const away = await tollgate(['config', 'check', file], closed);
  expect([away.code, away.stdout]).toEqual([
    0,
    expect.stringMatching(/\n- no running Tollgate was asked: nothing answers at \S+ \(--no-server asks none\)\.\n$/),
  ]);
});
