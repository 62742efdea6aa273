import { eventually, onceServed } from '@tollgate/testing';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { call } from './deployment';
import { complete, createTenant, embedded, withStoppedDatabase, writeConfig } from './fixtures';
import { postgresPid, StandaloneProcess, useDataDirectory } from './standalone-process';

// Only the standalone form: the embedded server, its data directory, and the messages of a failed start.
const directory = useDataDirectory();
const data = () => join(directory.path, 'data');
const env = () => ({
  TOLLGATE_DATA_DIR: data(),
  TOLLGATE_CONFIG: writeConfig(directory.path),
  TOLLGATE_DEMO: 'false',
});

describe('the only process', () => {
  let first: Awaited<ReturnType<typeof StandaloneProcess.start>>;
  beforeAll(async () => {
    first = await StandaloneProcess.start(env());
  });

  it('runs PostgreSQL in a folder that only its owner may enter, but not as root', () => {
    expect(statSync(directory.path).mode & 0o777).toBe(0o700);
    const owner = execFileSync('ps', ['-o', 'user=', '-p', String(postgresPid(data()))])
      .toString()
      .trim();
    expect(owner).not.toBe('root');
    expect(statSync(join(data(), 'operator.json')).mode & 0o777).toBe(0o600);
  });

  it('is unharmed by a second one on its directory, which reports its reason and the remedy in one line', async () => {
    expect(await failure({})).toMatch(/^tollgate: Another Tollgate runs on .*TOLLGATE_DATA_DIR\.$/);
    expect((await call(`${first.ready.operatorUrl}/readyz`, '')).status).toBe(200);
  });

  it('flushes the books before it stops PostgreSQL', async () => {
    const tenant = await createTenant(first.ready, 1_000);
    const asked = (body: object) =>
      onceServed(() => complete(first.ready, tenant.key, { messages: [{ role: 'user', content: 'x' }], ...body }));
    const stream = asked({ stream: true, simulator: { tokensPerSecond: 60, answerTokens: 420 } });
    const plain = asked({ max_tokens: 20, simulator: { firstTokenDelayMs: 7_000 } });
    // Both are admitted, so neither is refused any more because the store is busy.
    await eventually(async () => {
      const holds = `SELECT count(*)::int AS count FROM admission.hold WHERE state = 'pending'`;
      const { rows } = await embedded(data())((client) => client.query<{ count: number }>(holds));
      expect(rows).toEqual([{ count: 2 }]);
    });
    const exit = first.end('SIGINT');
    const answers = await Promise.all([stream, plain]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
    expect(await exit).toBe(0);
    expect(first.stderr).toMatch(/"requests":2,"timeoutMs":\d+,"msg":"waiting for running requests to finish"/);
    expect(postgresPid(data())).toBeNull();
    // The books are flushed already, not by the next start.
    const left = await withStoppedDatabase(data(), async (client) => {
      const { rows } = await client.query<{ holds: number; batches: number; outbox: number }>(
        `SELECT (SELECT count(*)::int FROM admission.hold) AS holds,
                (SELECT count(*)::int FROM messages.batch) AS batches,
                (SELECT count(*)::int FROM metering.outbox) + (SELECT count(*)::int FROM billing.outbox) AS outbox`,
      );
      return rows[0];
    });
    expect(left).toEqual({ holds: 0, batches: 0, outbox: 0 });
  });
});

/**
 * Expects that a start fails with exit code 1. Returns its lines on stderr, without the log.
 */
async function failure(settings: Record<string, string>, args?: string[]): Promise<string> {
  const failing = StandaloneProcess.spawn({ ...env(), ...settings }, args);
  expect([await failing.exited(), failing.stdout]).toEqual([1, '']);
  const lines = failing.stderr.trim().split('\n');
  return lines.filter((line) => !line.startsWith('{')).join('\n');
}

describe('a failed start reports its reason and the remedy in one line:', () => {
  it.each([[['TOLLGATE_PORT']], [['TOLLGATE_PORT', 'TOLLGATE_OPERATOR_PORT']]])(
    'ports in use (%j), each in its line and the public one first',
    async (settings) => {
      const others = settings.map(() => createServer().listen(0, '127.0.0.1'));
      await Promise.all(others.map((other) => new Promise((resolve) => other.once('listening', resolve))));
      const ports = others.map((other) => String((other.address() as AddressInfo).port));
      const given = Object.fromEntries(settings.map((setting, i) => [setting, ports[i]!]));
      try {
        // The operator's port, by default the next one, may be in use too.
        expect((await failure({ TOLLGATE_OPERATOR_PORT: '0', ...given })).split('\n')).toEqual(
          settings.map(
            (setting, i) =>
              `tollgate: Port ${ports[i]} on 127.0.0.1 is in use: ` +
              `stop what listens there, or set ${setting} (0 = any free port).`,
          ),
        );
        expect(postgresPid(data())).toBeNull();
      } finally {
        for (const other of others) other.close();
      }
    },
  );

  it('a wrong tollgate.yaml, with the path and line of each wrong field', async () => {
    const file = join(directory.path, 'wrong.yaml');
    writeFileSync(
      file,
      readFileSync(writeConfig(directory.path), 'utf8')
        .replace("input: '5'", 'input: 5')
        .replace('kind: chat', 'kind: chat\n    colour: red'),
    );
    const lines = (await failure({ TOLLGATE_CONFIG: file })).split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/^tollgate: .*wrong\.yaml:8: models\[0\]\.colour: there is no such field$/),
      expect.stringMatching(/^tollgate: .*wrong\.yaml:11: models\[0\].price\.input: .*in quotes/),
    ]);
  });

  it('a missing configuration file, a wrong setting, an unknown option', async () => {
    expect(await failure({ TOLLGATE_CONFIG: '/does/not/exist.yaml' })).toMatch(
      /^tollgate: \/does\/not\/exist\.yaml: cannot be read \(there is no such file or directory\): set TOLLGATE_CONFIG/,
    );
    expect(await failure({ TOLLGATE_PORT: '70000' })).toMatch(
      /^tollgate: TOLLGATE_PORT must be a whole number from 0 to 65535$/,
    );
    for (const args of [['--validate'], []])
      expect(await failure({ TOLLGATE_PORT: '8100', TOLLGATE_OPERATOR_PORT: '8100' }, args)).toBe(
        'tollgate: TOLLGATE_OPERATOR_PORT must differ from TOLLGATE_PORT: both are 8100',
      );
    expect(await failure({}, ['--jsn'])).toMatch(/^tollgate: There is no option --jsn\./);
  });

  it('no PostgreSQL at DATABASE_URL, without its password in the line', async () => {
    const line = await failure({ DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/books' });
    expect(line).toBe('tollgate: No PostgreSQL answers at 127.0.0.1:1/books: start it, or correct DATABASE_URL.');
  });

  it('a data directory that cannot be used', async () => {
    const file = join(directory.path, 'a-file');
    writeFileSync(file, '');
    expect(await failure({ TOLLGATE_DATA_DIR: file })).toMatch(
      new RegExp(
        '^tollgate: The data directory .*a-file cannot be written \\(a part of its path is not a directory\\): ' +
          'correct that, or choose another with TOLLGATE_DATA_DIR\\.$',
      ),
    );
  });

  it('an operator secret that other users can read', async () => {
    const open = join(directory.path, 'open');
    mkdirSync(open);
    const secret = join(open, 'operator.secret');
    writeFileSync(secret, randomBytes(32).toString('hex'));
    chmodSync(secret, 0o644);
    expect(await failure({ TOLLGATE_DATA_DIR: open })).toBe(
      `tollgate: Other users can read ${secret}. Run: chmod 600 ${secret}`,
    );
  });

  it('the data of an embedded PostgreSQL whose password is lost', async () => {
    const lost = join(directory.path, 'lost-password');
    mkdirSync(join(lost, 'postgres'), { recursive: true });
    writeFileSync(join(lost, 'postgres', 'PG_VERSION'), '18');
    const line = await failure({ TOLLGATE_DATA_DIR: lost });
    expect(line).toMatch(
      /password of the embedded PostgreSQL cannot be read from .*\(there is no such file or directory\)\. Restore the file/,
    );
  });
});
