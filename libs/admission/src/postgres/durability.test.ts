import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId, UnavailableError } from '@tollgate/contracts';
import { migrate, startEmbeddedPostgres, type EmbeddedServer } from '@tollgate/postgres';
import { eventually, PATIENT_CALL_MS } from '@tollgate/testing';
import { Client } from 'pg';
import { AdmissionClient } from '../client/admission-client';
import { MIGRATIONS } from '../index';
import { Fixture, TOKEN_NANOS, WIDE } from '../suite/store.fixture';
import { PostgresAdmissionStore } from './postgres-admission-store';

/**
 * A server that this file may crash. It rarely flushes its log, so only what was waited for is on disk. A standby can
 * be requested.
 */
const SETTINGS = { wal_writer_delay: '10s', wal_level: 'replica', max_wal_senders: '1' };

let dataDirectory: string;
let server: EmbeddedServer;
let fixture: Fixture;

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'tollgate-durability-'));
  server = await startEmbeddedPostgres({ dataDirectory, settings: SETTINGS });
  await migrate({ url: server.url, ...MIGRATIONS });
  fixture = new Fixture(
    async ({ now }) =>
      new PostgresAdmissionStore({ url: server.url, callTimeoutMs: PATIENT_CALL_MS, ...(now ? { now } : {}) }),
  );
  await fixture.setUp();
});
afterAll(async () => {
  await fixture.tearDown();
  await server.stop();
  await rm(dataDirectory, { recursive: true, force: true });
});

async function asOperator(...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  for (const sql of statements) await client.query(sql);
  await client.end();
}
const RELOAD = 'SELECT pg_reload_conf()';

/** As new connections see it: a reload takes a moment. */
async function setting(name: string): Promise<string> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query<{ value: string }>('SELECT current_setting($1) AS value', [name]);
  await client.end();
  return rows[0]!.value;
}

/** Commits durably until a commit waits for the standby. `ended` resolves when that commit is released. */
async function waitingCommit(): Promise<{ ended(): Promise<void> }> {
  const probe = new Client({ connectionString: server.url, application_name: 'probe' });
  await probe.connect();
  let committing: Promise<unknown> | undefined;
  await eventually(async () => {
    committing ??= probe
      .query(`SELECT pg_logical_emit_message(true, 'probe', '')`)
      .finally(() => (committing = undefined));
    expect(await waitEvent('probe')).toBe('SyncRep');
  });
  return {
    ended: async () => {
      await committing;
      await probe.end();
    },
  };
}

async function waitEvent(application: string): Promise<string | null> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query<{ wait_event: string | null }>(
    'SELECT wait_event FROM pg_stat_activity WHERE application_name = $1',
    [application],
  );
  await client.end();
  return rows[0]!.wait_event;
}

/**
 * Kills one server process. PostgreSQL then drops all others, recovers from disk and accepts connections again, within
 * a moment.
 */
async function crashAndRecover(): Promise<void> {
  const [victim, other] = [new Client({ connectionString: server.url }), new Client({ connectionString: server.url })];
  for (const client of [victim, other]) {
    client.on('error', () => {});
    await client.connect();
  }
  const { rows } = await victim.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  // PostgreSQL notices the crash when it drops this other connection. Until then it accepts connections as usual.
  const dropped = new Promise((resolve) => other.once('end', resolve));
  process.kill(rows[0]!.pid, 'SIGKILL');
  await dropped;
  await eventually(() => asOperator('SELECT 1'), { timeoutMs: 60_000 });
}

/**
 * Runs `before` once, between the answer of the next settlement and its flush. Everything else reaches the real server
 * unchanged.
 */
function beforeNextFlush(before: () => Promise<void>): void {
  const query = Client.prototype.query as (...args: unknown[]) => unknown;
  let answered: Promise<void> | undefined;
  const spy = jest.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...args: unknown[]) {
    const [config, callback] = args as [{ name?: string }, (...answer: unknown[]) => void];
    if (config.name === 'settle') {
      let result: unknown;
      answered = new Promise((resolve) => {
        result = query.call(this, config, (...answer: unknown[]) => {
          callback(...answer);
          resolve();
        });
      });
      return result;
    }
    if (config.name !== 'flush') return query.apply(this, args);
    spy.mockRestore();
    return answered!.then(before).then(() => query.apply(this, args));
  });
}

describe('a settlement', () => {
  it('that waits for the disk delays neither admissions of the same tenant nor a look for a free claim', async () => {
    await fixture.setBalance(10n ** 12n);
    const client = new AdmissionClient(fixture.store);
    const id = await fixture.hold();
    // A durable commit now waits for a standby that does not exist.
    await asOperator(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, RELOAD);
    await eventually(async () => expect(await setting('synchronous_standby_names')).toBe('nobody'));
    // The setting is in force once the checkpointer has read it as well.
    const probe = await waitingCommit();
    const settling = client.settle({ event: fixture.event(id, TOKEN_NANOS) });
    let settled = false;
    void settling.then(() => (settled = true));
    await eventually(async () => expect(await fixture.sums()).toMatchObject({ settledHolds: 1 }));
    expect(await client.admit(fixture.request())).toMatchObject({ kind: 'held' });
    // A claim that nobody has says nothing that would have to be on the disk.
    expect(await fixture.store.recall([{ tenantId: fixture.tenantId, claimId: 'free' }])).toEqual([{ kind: 'free' }]);
    expect(settled).toBe(false);
    await asOperator('ALTER SYSTEM RESET synchronous_standby_names', RELOAD);
    expect(await settling).toMatchObject({ kind: 'settled', repeated: false });
    await probe.ended();
    await client.close();
  });

  it('that a crash loses before it is on disk is not answered as durable', async () => {
    await fixture.setBalance(10n ** 12n);
    const id = await fixture.hold();
    const event = fixture.event(id, 2n * TOKEN_NANOS);
    await asOperator('CHECKPOINT');
    const before = await fixture.sums();
    beforeNextFlush(crashAndRecover);
    await expect(fixture.store.settle([{ event }])).rejects.toThrow(UnavailableError);
    // The crash loses it, unless the log writer ran in that very moment. The client repeats by itself. A
    // crash before its first call is durable is not reported as a success either.
    const client = new AdmissionClient(fixture.store);
    beforeNextFlush(crashAndRecover);
    expect(await client.settle({ event })).toMatchObject({ kind: 'settled', event });
    await crashAndRecover();
    expect((await fixture.sums()).settledNanos).toBe(before.settledNanos + 2n * TOKEN_NANOS);
    await client.close();
  });

  it('survives a crash of PostgreSQL, and so do the buckets', async () => {
    await fixture.setBalance(10n ** 12n);
    const limited = { keyId: newId('key'), keyLimits: { ...WIDE, requestsPerMinute: 1 } };
    const before = await fixture.sums();
    const id = await fixture.hold(limited);
    const event = fixture.event(id, 3n * TOKEN_NANOS);
    await fixture.settle(id, 3n * TOKEN_NANOS);

    const pidFile = join(dataDirectory, 'postgres', 'postmaster.pid');
    process.kill(Number((await readFile(pidFile, 'utf8')).split('\n')[0]), 'SIGQUIT');
    await eventually(() => expect(existsSync(pidFile)).toBe(false));
    server = await startEmbeddedPostgres({ dataDirectory, settings: SETTINGS });

    const repeat = await eventually(() => fixture.store.settle([{ event }]));
    expect(repeat).toEqual([{ kind: 'settled', repeated: true, event }]);
    expect((await fixture.sums()).settledNanos).toBe(before.settledNanos + 3n * TOKEN_NANOS);
    expect(await fixture.admit(fixture.request(limited))).toMatchObject({ kind: 'refused', reason: 'requests' });
  });
});
