import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cliConfigTests } from './cli-config.part';
import { cliHelpTests } from './cli-help.part';
import { OPERATOR_SECRET, useServices } from '../services';
import { runTollgate, useDataDirectory, withAnswer, withAnswersLost, withServer } from '../tollgate-process';

// Each command is a process.
const services = useServices();
const directory = useDataDirectory(services);
const tollgate = (args: string[], env: Record<string, string> = {}) =>
  runTollgate(args, { TOLLGATE_DATA_DIR: directory.path, ...env });

it('the command line prints the version of Tollgate without a server', async () => {
  const root = JSON.parse(readFileSync(join(__dirname, '../../../package.json'), 'utf8')) as { version: string };
  const printed = await tollgate(['--version'], { TOLLGATE_DATA_DIR: join(directory.path, 'nothing') });
  expect(printed).toEqual({ code: 0, stdout: `${root.version}\n`, stderr: '' });
});

describe('exit code 1', () => {
  it('says that the tenant is unknown, with the remedy, and as JSON with --json', async () => {
    const id = newId('ten');
    const plain = await tollgate(['credit', 'show', id]);
    const message = `No tenant has the id '${id}'. See: tollgate tenant list`;
    expect(plain).toEqual({ code: 1, stdout: '', stderr: `tollgate: ${message}\n` });
    const asJson = await tollgate(['credit', 'show', id, '--json']);
    expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([1, { error: { code: 'not_found', message } }]);
  });

  it('says that there is no server, with the remedy and without the secret', async () => {
    const closed = {
      TOLLGATE_OPERATOR_URL: await withServer('', (url) => Promise.resolve(url)),
      TOLLGATE_OPERATOR_SECRET: 'do-not-print-me',
    };
    const cases: [Record<string, string>, RegExp][] = [
      [{ TOLLGATE_DATA_DIR: join(directory.path, 'nothing') }, /No Tollgate was found.*npm start/],
      [closed, /does not answer at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\).*Is it running/],
      [{ TOLLGATE_OPERATOR_SECRET: 'do-not-print-me' }, /secret.*was refused/],
    ];
    for (const [env, message] of cases) {
      const { code, stdout, stderr } = await tollgate(['tenant', 'list'], env);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(message);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect(stderr).not.toContain('do-not-print-me');
    }
  });

  it('says that another program answers, or that the file is broken', async () => {
    const answer = await withServer('<html>', (url) =>
      tollgate(['tenant', 'list'], { TOLLGATE_OPERATOR_URL: url, TOLLGATE_OPERATOR_SECRET: 'x' }),
    );
    expect([answer.code, answer.stderr]).toEqual([1, expect.stringContaining('is not Tollgate')]);
    const broken = mkdtempSync(join(tmpdir(), 'tollgate-cli-'));
    writeFileSync(join(broken, 'operator.json'), '{');
    expect((await tollgate(['tenant', 'list'], { TOLLGATE_DATA_DIR: broken })).code).toBe(1);
    rmSync(broken, { recursive: true });
  });

  it('says that the public port is not the operator port', async () => {
    const env = { TOLLGATE_OPERATOR_URL: services.publicUrl, TOLLGATE_OPERATOR_SECRET: 'x' };
    const { code, stderr } = await tollgate(['tenant', 'list'], env);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/is the public port of Tollgate\. Set TOLLGATE_OPERATOR_URL/),
    ]);
  });

  it('says that the books differ', async () => {
    const { tenantId } = await services.tenant();
    await services.messages.request('billing.credit.add', { tenantId, amountCents: 5, source: 'manual', ref: 'x' });
    const report = {
      ok: false,
      differenceCount: 1,
      truncated: true,
      differences: [{ check: 'balance', tenantId, expected: '1', actual: '2', ids: ['ent_x'] }],
      checkedAt: '',
      tenants: 1,
      events: 0,
    };
    const sums = {
      eventsNanos: '0',
      chargesNanos: '0',
      debitsNanos: '0',
      carriedNanos: '0',
      pendingHolds: 0,
      settledHolds: 0,
      currency: 'USD',
    };
    // A fixed answer of the server, which the tests of billing prove.
    const body = JSON.stringify({ data: { ...report, ...sums } });
    const [plain, asJson] = await withServer(body, async (url) => {
      const env = { TOLLGATE_OPERATOR_URL: url, TOLLGATE_OPERATOR_SECRET: 'x' };
      return [await tollgate(['reconcile'], env), await tollgate(['reconcile', '--json'], env)] as const;
    });
    expect([plain.code, asJson.code]).toEqual([1, 1]);
    expect(plain.stdout).toContain('THE BOOKS DIFFER in at least 1 place');
    expect(plain.stdout).toContain('There are more');
    expect(JSON.parse(asJson.stdout)).toMatchObject({ differences: report.differences, truncated: true });
  });
});

describe('a booking whose answer is lost', () => {
  it.each([
    ['add', 5_500, [] as string[]],
    ['add', 5_500, ['--ref', 'pi_7', '--source', 'stripe']],
    ['refund', 4_500, ['--ref', 're_7', '--source', 'stripe', '--yes']],
    ['adjust', 5_500, ['--ref', 'ticket 7', '--reason', 'goodwill', '--source', 'support']],
  ])('by %s names the ref, and is entered once if it is repeated with it', async (how, balanceCents, options) => {
    const { tenantId } = await services.tenant();
    await services.messages.request('billing.credit.add', { tenantId, amountCents: 5_000, source: 'manual', ref: 'x' });
    const credit = async () => JSON.parse((await tollgate(['credit', 'show', tenantId, '--json'])).stdout);
    await eventually(async () => expect(await credit()).toMatchObject({ spendableCents: 5_000 }));
    const args = ['credit', how, tenantId, '5', ...options];
    const lost = await withAnswersLost(services, (url) =>
      tollgate([...args, '--json'], { TOLLGATE_OPERATOR_URL: url, TOLLGATE_OPERATOR_SECRET: OPERATOR_SECRET }),
    );
    expect([lost.code, await credit()]).toEqual([1, expect.objectContaining({ balanceCents })]);
    const { code, message } = JSON.parse(lost.stdout).error;
    expect([code, message]).toEqual([
      'unreachable',
      expect.stringMatching(/does not answer.* Repeat it with --ref .+ and/),
    ]);
    // Splits it like a shell.
    const ref = / --ref '?(.+?)'? and /.exec(message)![1]!;
    expect(message).toContain(ref.includes(' ') ? ` --ref '${ref}' ` : ` --ref ${ref} `);
    const again = await tollgate([...args, '--ref', ref, '--json']);
    expect(JSON.parse(again.stdout)).toMatchObject({ balanceCents, entry: { ref }, created: false });
  });
});

it('credit explains how to repeat a command only if that can help', async () => {
  const { tenantId } = await services.tenant();
  const add = ['credit', 'add', tenantId, '5', '--ref', 'once', '--json'];
  expect((await tollgate(add)).code).toBe(0);
  const again = await tollgate(add.slice(0, -1));
  expect([again.code, again.stdout]).toEqual([
    0,
    expect.stringMatching(/^5\.00 USD was already added at 20\S+Z \(ref once\)\. Nothing was changed\./),
  ]);
  const { error } = JSON.parse((await tollgate(add.with(3, '6'))).stdout);
  expect(error).toEqual({ code: 'ref_conflict', message: expect.not.stringContaining('Repeat it') });
});

it('the command says in its words what the server refuses of a tenant, and a refund without a sign', async () => {
  const { tenantId } = await services.tenant();
  const create = ['tenant', 'create', 'x', '--external-id', newId('ten')];
  expect((await tollgate(create)).code).toBe(0);
  expect((await tollgate(create)).stderr).toBe(
    'tollgate: Another tenant has this --external-id. Choose another one.\n',
  );
  const booked = { tenantId, amountCents: 5_000, source: 'manual', ref: 'x' };
  await services.messages.request('billing.credit.add', booked);
  await eventually(async () => {
    const refund = await tollgate(['credit', 'refund', tenantId, '5', '--ref', 'r', '--yes']);
    expect([refund.stderr, refund.stdout]).toEqual(['', expect.stringMatching(/^5\.00 USD (was already )?refunded/)]);
  });
  const again = await tollgate(['credit', 'refund', tenantId, '5', '--ref', 'r', '--yes']);
  expect(again.stdout).toMatch(/^5\.00 USD was already refunded/);
  const help = async (...args: string[]) => (await tollgate([...args, '--help'])).stdout;
  expect(await help('tenant', 'set-plan')).not.toContain('(default: {})');
  expect(await help('usage', 'export')).toMatch(/--json +has no effect here: --format ndjson/);
  const lacking = JSON.stringify({
    error: {
      code: 'profiles_missing',
      message: 'Plan p lacks batch (keys: 1). Name another one for each in profiles. It has d.',
    },
  });
  const { stderr } = await withAnswer(409, lacking, (url) =>
    tollgate(['tenant', 'set-plan', tenantId, 'p'], { TOLLGATE_OPERATOR_URL: url, TOLLGATE_OPERATOR_SECRET: 'x' }),
  );
  expect(stderr).toContain('Name another one for each with --profile <from>=<to>. It has d.');
});

describe('exit code 2', () => {
  it.each([
    [[]],
    [['tenant']],
    [['nonsense']],
    [['tenant', 'create']],
    [['tenant', 'create', 'a', 'b']],
    [['tenant', 'list', '--nonsense']],
    [['credit', 'add', 'ten_x', '1.234']],
    [['credit', 'add', 'ten_x', '-5']],
    [['credit', 'show', 'ten_x', '--entries', '0']],
    [['token', 'create', 'ten_x', 'n', '--scopes', 'everything']],
  ])('says that the usage is wrong: %j', async (args) => {
    const { code, stdout, stderr } = await tollgate(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^tollgate: .*\nAdd --help for the arguments and examples\.\n$|^Usage:/);
  });

  it('names a wrong argument and the value that it got', async () => {
    const { stderr } = await tollgate(['credit', 'add', 'ten_x', 'abc']);
    expect(stderr).toMatch(/^tollgate: amount 'abc' is invalid\. It must be a positive number of currency units/);
  });

  it.each([
    ['usage', ['--from', 'yesterday'], '--from must be a date or time such as 2026-11-01.'],
    ['usage', ['--key', 'nonsense'], '--key must be an id, which begins with key_.'],
    [
      'usage',
      ['--from', '2026-11-02', '--to', '2026-11-01'],
      '--from must be before --to. The default of --from is the start of this calendar month (UTC). ' +
        'The default of --to is the current time.',
    ],
    ['key create', ['--tags', 'a b'], '--tags must be a list of at most 16 distinct words'],
    [
      'key create',
      ['--profile', 'nothing'],
      '--profile must name a key profile of the tenant\'s plan; "nothing" is not one.',
    ],
    ['key create', ['--expires-at', 'tomorrow'], '--expires-at must be an ISO 8601 timestamp in the future.'],
  ])(
    'says what the server finds wrong in "%s" with %j, in the words of the command',
    async (command, options, message) => {
      const { tenantId } = await services.tenant();
      const { code, stdout, stderr } = await tollgate([...command.split(' '), tenantId, ...options]);
      expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(`tollgate: ${message}`)]);
    },
  );

  it('says that a date without an end is after now, in every command for usage', async () => {
    const { tenantId } = await services.tenant();
    for (const args of [[tenantId], ['export'], ['export', '--step', 'day']]) {
      const { code, stdout, stderr } = await tollgate(['usage', ...args, '--from', '2190-01-01']);
      expect([code, stdout, stderr]).toEqual([
        2,
        '',
        expect.stringMatching(/^tollgate: --from must be before --to\. The/),
      ]);
    }
  });

  it.each(['do-not-print-me\nb', 'do-not-print-me b', 'do-not-print-me€'])(
    'says that a secret cannot be one, without the secret: %j',
    async (secret) => {
      const { code, stdout, stderr } = await tollgate(['tenant', 'list'], { TOLLGATE_OPERATOR_SECRET: secret });
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(/^tollgate: The operator secret has a character that no secret has/);
      expect(stderr).not.toContain('do-not-print-me');
    },
  );

  it('says that settings contradict each other', async () => {
    for (const env of [
      { TOLLGATE_OPERATOR_URL: 'http://x' },
      { TOLLGATE_OPERATOR_URL: 'x', TOLLGATE_OPERATOR_SECRET: 'y' },
    ]) {
      expect(await tollgate(['tenant', 'list'], env)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('TOLLGATE_OPERATOR_URL'),
      });
    }
  });
});

it('the environment overrides the data directory, with or without the path of the API', async () => {
  for (const path of ['', '/', '/_operator/v1']) {
    const env = {
      TOLLGATE_OPERATOR_URL: services.operatorUrl + path,
      TOLLGATE_OPERATOR_SECRET: OPERATOR_SECRET,
      TOLLGATE_DATA_DIR: '/nowhere',
    };
    expect((await tollgate(['tenant', 'list'], env)).code).toBe(0);
  }
});

cliHelpTests(tollgate);
cliConfigTests(services);

it('commands that do not need Kafka load neither kafkajs nor the messaging library', () => {
  const program = join(__dirname, '../../../apps/cli/dist/program.js');
  const script = `require(${JSON.stringify(program)});
    console.log(Object.keys(require.cache).filter((file) => /kafkajs|messaging/.test(file)).length)`;
  expect(execFileSync(process.execPath, ['--eval', script], { encoding: 'utf8' })).toBe('0\n');
});
