import { hashCredential, newId } from '@tollgate/contracts';
import { LOCALHOST_CERTIFICATE } from '@tollgate/testing';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Services } from '../services';
import { runTollgate, useDataDirectory, withServer } from '../tollgate-process';

export function cliConfigTests(services: Services): void {
  const directory = useDataDirectory(services);
  const tollgate = (args: string[], env: Record<string, string> = {}) =>
    runTollgate(args, { TOLLGATE_DATA_DIR: directory.path, ...env });

  const model = (more: string) =>
    `  - { id: m, kind: chat, contextTokens: 2048, price: { input: "1", output: "1" }, backends: [${more}] }\n`;
  const LIMITS = '{ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }';
  const PLANS = `plans:\n  - { id: p, limits: ${LIMITS}, profiles: [{ id: d, models: ["*"], limits: ${LIMITS} }] }\n`;

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
      expect([none.code, none.stderr]).toEqual([
        1,
        expect.stringMatching(/none\.yaml: cannot be read \(there is no such file or directory\)\n$/),
      ]);
      const wrong = await tollgate(['config', 'check'], { TOLLGATE_CONFIG: '/nowhere.yaml' });
      expect([wrong.code, wrong.stderr]).toEqual([
        1,
        '/nowhere.yaml: cannot be read (there is no such file or directory)\n' +
          'Name the file, or set TOLLGATE_CONFIG to it.\n',
      ]);
    });

    it('names the second of two equal ids, checks a file without its secrets, and says what it derives', async () => {
      const backend = '{ url: "http://gpu/v1", apiKey: "${NOT_HERE}" }';
      const file = join(directory.path, 'fleet.yaml');
      writeFileSync(file, `currency: USD\nmodels:\n${model(backend)}${model(backend)}${PLANS}`);
      const twice = await tollgate(['config', 'check', file, '--allow-missing-env']);
      expect([twice.code, twice.stderr]).toEqual([
        1,
        expect.stringMatching(/fleet\.yaml:4: models\[1\]\.id: "m" must not be given twice/),
      ]);
      const others = model(backend).replace('id: m', 'id: n');
      writeFileSync(file, `currency: USD\nmodels:\n${model(backend)}${others}${PLANS}`);
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

    it.each([
      ['tls: { certificate: "${CERT}", key: "${NOT_HERE}" }', 'NOT_HERE is not set', true],
      ['headers: { x-team: "${NOT_HERE}" }', 'NOT_HERE is not set', true],
      ['apiKey: "file:not-here"', 'the file cannot be read', true],
      ['apiKey: literal', 'must be a reference', false],
      ['apiKey: "${LINES}"', 'printable ASCII', false],
    ])('names --allow-missing-env only if a secret is not here: %s', async (field, problem, named) => {
      const file = join(directory.path, 'secrets.yaml');
      writeFileSync(file, `currency: USD\nmodels:\n${model(`{ url: "https://gpu/v1", ${field} }`)}${PLANS}`);
      const env = { CERT: LOCALHOST_CERTIFICATE, LINES: 'a\nb' };
      const { code, stderr } = await tollgate(['config', 'check', file, '--no-server'], env);
      expect([code, stderr]).toEqual([1, expect.stringContaining(problem)]);
      expect(stderr.includes('--allow-missing-env')).toBe(named);
    });

    it.each([
      [{ TOLLGATE_OPERATOR_URL: 'http://localhost:1' }, /TOLLGATE_OPERATOR_SECRET is not: set both\.$/],
      [{ TOLLGATE_OPERATOR_URL: 'nonsense', TOLLGATE_OPERATOR_SECRET: 'x' }, /TOLLGATE_OPERATOR_URL/],
      [
        { TOLLGATE_OPERATOR_URL: 'http://localhost:1', TOLLGATE_OPERATOR_SECRET: 'x\ny' },
        /Correct\s+TOLLGATE_OPERATOR_S/,
      ],
    ])('refuses wrong settings for the running Tollgate as wrong usage: %j', async (env, message) => {
      const { code, stdout, stderr } = await tollgate(['config', 'check'], env);
      expect([code, stdout, stderr.trim()]).toEqual([2, '', expect.stringMatching(message)]);
      expect((await tollgate(['config', 'check', '--no-server'], env)).code).toBe(0);
    });
  });

  it('config check says what a running Tollgate would refuse, and asks none with --no-server', async () => {
    const { tenantId } = await services.tenant();
    await services.messages.request('auth.keys.create', {
      ...{ tenantId, name: 'in use', hash: hashCredential(newId('msg')), last4: 'test' },
    });
    const shipped = readFileSync(join(__dirname, '../../../tollgate.yaml'), 'utf8');
    const file = join(directory.path, 'renamed.yaml');
    writeFileSync(file, shipped.replace('      - id: default\n', '      - id: other\n'));
    const refused = await tollgate(['config', 'check', file, '--json']);
    expect([refused.code, JSON.parse(refused.stdout)]).toMatchObject([
      1,
      {
        ok: false,
        problems: [{ message: expect.stringMatching(/would refuse it: .*profile default of plan default/) }],
      },
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
}
