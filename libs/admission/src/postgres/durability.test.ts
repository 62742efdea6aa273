import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@tollgate/contracts';
import { migrate, startEmbeddedPostgres, type EmbeddedServer } from '@tollgate/postgres';
import { eventually } from '@tollgate/testing';
import { Client } from 'pg';
import { AdmissionClient } from '../admission-client';
import { Fixture, TOKEN_NANOS, WIDE } from '../suite/fixture.suite';
import { PostgresAdmissionStore } from './postgres-admission-store';

/** A server of its own, which this file may crash. It writes its log rarely, so that only what is waited for is on disk; one standby may be asked for. */
const SETTINGS = { wal_writer_delay: '10s', wal_level: 'replica', max_wal_senders: '1' };

let dataDirectory: string;
let server: EmbeddedServer;
let fixture: Fixture;

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'tollgate-durability-'));
  server = await startEmbeddedPostgres({ dataDirectory, settings: SETTINGS });
  await migrate({ url: server.url, schema: 'admission', directory: join(__dirname, 'migrations') });
  fixture = new Fixture(async ({ now }) => new PostgresAdmissionStore({ url: server.url, ...(now ? { now } : {}) }));
  await fixture.setUp();
});
afterAll(async () => {
  await fixture.tearDown();
  await server.stop();
  await rm(dataDirectory, { recursive: true, force: true });
});

async function asOperator(sql: string): Promise<void> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await client.query(sql);
  await client.query('SELECT pg_reload_conf()');
  await client.end();
}

describe('a settlement', () => {
  it('that waits for the disk holds up no admission of the same tenant', async () => {
    await fixture.news(10n ** 12n);
    const client = new AdmissionClient(fixture.store);
    const id = await fixture.hold();
    // A durable commit now waits for a standby that does not exist.
    await asOperator(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
    const settling = client.settle({ event: fixture.event(id, TOKEN_NANOS) });
    let settled = false;
    void settling.then(() => (settled = true));
    await eventually(async () => expect(await fixture.sums()).toMatchObject({ settledHolds: 1 }));
    expect(await client.admit(fixture.request())).toMatchObject({ kind: 'held' });
    expect(settled).toBe(false);
    await asOperator('ALTER SYSTEM RESET synchronous_standby_names');
    expect(await settling).toMatchObject({ kind: 'settled', repeated: false });
    await client.close();
  });

  it('is there after a crash of Postgres; buckets are full again', async () => {
    await fixture.news(10n ** 12n);
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
    expect(await fixture.admit(fixture.request(limited))).toMatchObject({ kind: 'held' });
  });
});
