import { connectionConfig } from '@tollgate/postgres';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { credentialsSuite } from '../credentials.suite';
import { aRecord, lookup, put } from '../record.fixture';
import { Link } from '../link.fixture';
import { PostgresCredentialStore } from './postgres-credential-store';

// Lost connections are the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });
const database = useTestDatabase();

async function open() {
  const {
    host,
    port,
    user,
    password,
    database: name,
  } = connectionConfig({ url: database.url, schema: 'credentials', applicationName: 'test' });
  const link = await Link.open(
    host?.startsWith('/')
      ? { path: `${host}/.s.PGSQL.${port ?? 5432}` }
      : { host: host ?? 'localhost', port: port ?? 5432 },
  );
  const url = `postgres://${user}:${encodeURIComponent(String(password))}@127.0.0.1:${link.port}/${name}`;
  return { store: new PostgresCredentialStore({ url, applicationName: 'credentials-test' }), link };
}

credentialsSuite('PostgresCredentialStore', () => ({
  open,
  async loseNotifications() {
    await database.query('ALTER TABLE credentials.credential DISABLE TRIGGER notify_change');
    return async () => void (await database.query('ALTER TABLE credentials.credential ENABLE TRIGGER notify_change'));
  },
  inMemory: (store) => (store as PostgresCredentialStore).size,
}));

describe('PostgresCredentialStore', () => {
  let store: PostgresCredentialStore;
  let link: Link;
  beforeEach(async () => {
    ({ store, link } = await open());
    await store.start();
  });
  afterEach(async () => {
    await store.close();
    await link.close();
  });

  const LISTENING = `
    SELECT pid FROM pg_stat_activity
    WHERE application_name = 'credentials-test' AND datname = current_database()
      AND query LIKE '%last_change LEFT JOIN%'`;

  it('listens again after the server ended its LISTEN connection, and misses no change in between', async () => {
    const record = aRecord();
    await put(store, [record]);
    await lookup(store, record.hash);
    const [before] = await eventually(async () => {
      const rows = await database.query<{ pid: number }>(LISTENING);
      expect(rows).toHaveLength(1);
      return rows;
    });
    await database.query('SELECT pg_terminate_backend($1)', [before!.pid]);
    // The number and its change in one statement, like a put.
    await database.query(
      `WITH next AS (UPDATE credentials.last_change SET number = number + 1 RETURNING number)
       UPDATE credentials.credential
       SET revoked_at_ms = 1, version = 2, change = (SELECT number FROM next) WHERE hash = $1`,
      [record.hash],
    );
    await eventually(async () => expect(await store.lookup(record.hash)).toMatchObject({ revokedAtMs: 1 }));
    await eventually(async () => {
      const rows = await database.query<{ pid: number }>(LISTENING);
      expect(rows).toHaveLength(1);
      expect(rows[0]).not.toEqual(before);
    });
  });

  it('drops its memory when the store was emptied', async () => {
    const record = aRecord();
    await put(store, [record]);
    await lookup(store, record.hash);
    await database.query('TRUNCATE credentials.credential');
    await database.query('UPDATE credentials.last_change SET number = 0');
    await eventually(async () => expect(await store.lookup(record.hash)).toBeNull());
    await put(store, [record]);
    expect(await lookup(store, record.hash)).toEqual(record);
  });

  it('reads changes in the order in which they become visible, even if a writer commits late', async () => {
    const [slow, quick] = [aRecord(), aRecord()];
    await put(store, [slow, quick]);
    await Promise.all([lookup(store, slow.hash), lookup(store, quick.hash)]);
    // A second writer within its transaction delays everyone behind it.
    await database.query('BEGIN');
    await database.query('UPDATE credentials.last_change SET number = number + 1');
    await database.query(
      `UPDATE credentials.credential
       SET version = 2, change = (SELECT number FROM credentials.last_change) WHERE hash = $1`,
      [slow.hash],
    );
    let done = false;
    // It may wait until it is given up.
    const written = put(store, [{ ...quick, version: 2 }]).then(() => (done = true));
    await eventually(async () => {
      const [row] = await database.query<{ waiting: number }>(
        `SELECT count(*)::int AS waiting FROM pg_stat_activity
         WHERE application_name = 'credentials-test' AND datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(row!.waiting).toBeGreaterThanOrEqual(1);
    });
    expect(done).toBe(false);
    await database.query('COMMIT');
    await written;
    await eventually(async () => {
      const found = await Promise.all([store.lookup(slow.hash), store.lookup(quick.hash)]);
      expect(found).toMatchObject([{ version: 2 }, { version: 2 }]);
    });
  });

  // The first is for reads, the second for the feed.
  it.each([[[1]], [[2]], [[1, 2, 4]]])('starts although its connections %j get no answer', async (connections) => {
    const startAndCall = async () => {
      const late = await open();
      try {
        late.link.swallow(connections);
        await late.store.start();
        const record = aRecord();
        await late.store.put([record]);
        expect(await late.store.lookup(record.hash)).toEqual(record);
      } finally {
        await late.store.close();
        await late.link.close();
      }
    };
    // A busy machine may take longer to connect than a call waits, but not for three stores.
    await startAndCall().catch(startAndCall).catch(startAndCall);
  });

  it('leaves no connection behind when it is closed', async () => {
    const extra = await open();
    await extra.store.start();
    await put(extra.store, [aRecord()]);
    await extra.store.close();
    await extra.link.close();
    await eventually(async () => {
      const rows = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE application_name = 'credentials-test' AND datname = current_database()`,
      );
      expect(rows.length).toBeLessThanOrEqual(3);
    });
  });
});
