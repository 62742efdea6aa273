import { startEmbeddedPostgres } from '@tollgate/postgres';
import { eventually } from '@tollgate/testing';
import { appendFileSync, chmodSync, chownSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { complete, costOf, createTenant, embedded, writeConfig, type Completion } from './fixtures';
import { postgresPid, StandaloneProcess, useDataDirectory } from './standalone-process';

// Real: the whole standalone process. The test kills its PostgreSQL.
const directory = useDataDirectory();
const env = () => ({
  TOLLGATE_DATA_DIR: directory.path,
  TOLLGATE_CONFIG: writeConfig(directory.path),
  TOLLGATE_DEMO: 'false',
});
const BACK_LIMIT_MS = 20_000;
const KILLS = 2;
/** One process alone asks for 80. */
const MORE_CONNECTIONS = '90';
const GIVEN_UP_LIMIT_MS = 30_000;
const CHAT = { messages: [{ role: 'user', content: 'x' }], simulator: { answerTokens: 5 } };

describe('a data directory that two processes set up at the same time', () => {
  it('belongs to the first one, and the start of the second one fails with that reason', async () => {
    const options = { dataDirectory: join(directory.path, 'shared') };
    const starts = await Promise.allSettled([startEmbeddedPostgres(options), startEmbeddedPostgres(options)]);
    const [server] = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    await server?.stop();
    expect(starts.map((start) => start.status === 'rejected' && String(start.reason)).sort()).toEqual([
      expect.stringMatching(/^Error: Another Tollgate runs on .*shared: stop it/),
      false,
    ]);
  });
});

it('a data directory whose server is stopping gets its next owner only when that server is gone', async () => {
  const options = { dataDirectory: join(directory.path, 'handed-over') };
  const first = await startEmbeddedPostgres(options);
  // Refused while the first one still has the directory.
  const [second] = await Promise.all([eventually(() => startEmbeddedPostgres(options)), first.stop()]);
  const client = new Client({ connectionString: second.url });
  try {
    await client.connect();
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(second.adopted).toBe(false);
  } finally {
    await client.end();
    await second.stop();
  }
});

it('starts after a hard reset of the machine, although another process has the number of its PostgreSQL', async () => {
  const options = { dataDirectory: join(directory.path, 'reset') };
  const file = join(options.dataDirectory, 'postgres', 'postmaster.pid');
  const first = await startEmbeddedPostgres(options);
  const kept = readFileSync(file, 'utf8');
  await first.stop();
  writeFileSync(file, kept.replace(/^\d+/, '1'));
  writeFileSync(join(kept.split('\n')[4]!, '.s.PGSQL.5432'), '');
  const second = await startEmbeddedPostgres(options);
  expect(second.adopted).toBe(false);
  await second.stop();
});

it('the log of an embedded PostgreSQL says which constraint was violated, without the value', async () => {
  const dataDirectory = join(directory.path, 'terse');
  const server = await startEmbeddedPostgres({ dataDirectory });
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    await client.query('CREATE TABLE person (email text UNIQUE)');
    const add = () => client.query('INSERT INTO person VALUES ($1)', ['anna@example.com']);
    await add();
    await expect(add()).rejects.toThrow(/person_email_key/);
  } finally {
    await client.end();
    await server.stop();
  }
  const log = readFileSync(join(dataDirectory, 'postgres', 'server.log'), 'utf8');
  expect(log).toContain('person_email_key');
  expect(log).not.toContain('anna@');
});

describe('a data directory that was copied', () => {
  // Only root runs PostgreSQL as another user.
  if (process.getuid?.() === 0)
    it('without its owners is refused with the command that corrects it', async () => {
      const { options, cluster } = await stoppedCluster('unowned');
      chownSync(cluster, 0, 0);
      await expect(startEmbeddedPostgres(options)).rejects.toThrow(
        `${cluster} does not belong to the user "postgres", which runs PostgreSQL. Run: chown -R postgres: ${cluster}`,
      );
    });

  it('with a log that cannot be written is refused for that reason, not for an older one in the log', async () => {
    const { options, cluster } = await stoppedCluster('unwritable');
    const log = join(cluster, 'server.log');
    appendFileSync(log, 'ERROR:  of an earlier run\n');
    chmodSync(log, 0o400);
    await expect(startEmbeddedPostgres(options)).rejects.toThrow(/^PostgreSQL did not start on .*: .*server\.log/);
  });

  async function stoppedCluster(name: string) {
    const options = { dataDirectory: join(directory.path, name) };
    await (await startEmbeddedPostgres(options)).stop();
    return { options, cluster: join(options.dataDirectory, 'postgres') };
  }
});

describe('an embedded PostgreSQL that is killed while Tollgate runs', () => {
  it('is started again, and every complete answer is charged once', async () => {
    const tollgate = await StandaloneProcess.start(env());
    const tenant = await createTenant(tollgate.ready, 1_000);
    const answers: Completion[] = [];
    const ask = async () => {
      const answer = await complete(tollgate.ready, tenant.key, CHAT);
      answers.push(answer);
      expect([200, 503]).toContain(answer.status);
      return answer.status;
    };
    for (let kill = 0; kill < KILLS; kill++) {
      // A busy store may refuse it at first.
      await eventually(async () => expect(await ask()).toBe(200), { timeoutMs: BACK_LIMIT_MS });
      const running = Promise.all([ask(), ask(), ask()]);
      process.kill(postgresPid(directory.path)!, 'SIGKILL');
      const killedMs = performance.now();
      await running;
      await eventually(async () => expect(await ask()).toBe(200), { timeoutMs: BACK_LIMIT_MS });
      process.stderr.write(
        `embedded PostgreSQL killed: serves again after ${(performance.now() - killedMs).toFixed()} ms\n`,
      );
    }
    // An answer may be earlier than this line, because another connection may be the first to succeed.
    await eventually(() => expect(tollgate.stderr).toMatch(/the embedded PostgreSQL is running again/), {
      timeoutMs: BACK_LIMIT_MS,
    });
    const complete200 = answers.filter(({ status }) => status === 200);
    await eventually(
      () =>
        embedded(directory.path)(async (client) => {
          const { rows } = await client.query<{ id: string; cost: string }>(
            'SELECT id, cost_nanos::text AS cost FROM billing.charge WHERE tenant_id = $1 ORDER BY id',
            [tenant.id],
          );
          const charges = new Map(rows.map(({ id, cost }) => [id, Number(cost)]));
          expect(complete200.map(({ requestId }) => charges.get(requestId))).toEqual(complete200.map(costOf));
        }),
      { timeoutMs: BACK_LIMIT_MS },
    );
    expect(await tollgate.end()).toBe(0);
    expect(postgresPid(directory.path)).toBeNull();
  });

  it('accepts as many connections as the next start needs, also if it is taken over', async () => {
    const tollgate = await StandaloneProcess.start(env());
    await tollgate.end('SIGKILL');
    const settings = { max_connections: MORE_CONNECTIONS };
    const server = await startEmbeddedPostgres({ dataDirectory: directory.path, settings });
    try {
      expect(server.adopted).toBe(true);
      const { rows } = await embedded(directory.path)((client) => client.query('SHOW max_connections'));
      expect(rows).toEqual([{ max_connections: MORE_CONNECTIONS }]);
    } finally {
      await server.stop();
    }
  });

  it('ends the process with one line and exit code 1 if it cannot be started again', async () => {
    const tollgate = await StandaloneProcess.start(env());
    const cluster = join(directory.path, 'postgres');
    const pid = postgresPid(directory.path)!;
    renameSync(cluster, `${cluster}-gone`);
    process.kill(pid, 'SIGKILL');
    const killedMs = performance.now();
    expect(await tollgate.exited()).toBe(1);
    expect(performance.now() - killedMs).toBeLessThan(GIVEN_UP_LIMIT_MS);
    const lines = tollgate.stderr.split('\n').filter((line) => line.startsWith('tollgate: '));
    expect(lines).toEqual([
      expect.stringMatching(
        /^tollgate: The embedded PostgreSQL ended and could not be started again: .*PostgreSQL did/,
      ),
    ]);
  });
});
