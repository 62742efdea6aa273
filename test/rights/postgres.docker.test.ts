import { newId } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { checkSchema, migrate, sqlState } from '@tollgate/postgres';
import type { ConfigSource } from '@tollgate/runtime';
import { usePostgresServer } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { MIGRATIONS as AUTH } from '../../apps/auth/src/database';
import { ChargeGatherer } from '../../apps/billing/src/gather/charge-gatherer';
import { Poster } from '../../apps/billing/src/post/poster';
import { MIGRATIONS as BILLING, openBillingDatabase } from '../../apps/billing/src/database';
import { auditLedger } from '../../apps/billing/src/reconcile/audit';
import { CENT, charge } from '../../apps/billing/src/testing/billing.fixture';
import { TopUps } from '../../apps/billing/src/topups/top-ups';
import { UsageConsumer } from '../../apps/metering/src/consume/usage-consumer';
import { MIGRATIONS as METERING, openMeteringDatabase } from '../../apps/metering/src/database';
import { PriceVersions } from '../../apps/metering/src/record/price-versions';
import { Partitions } from '../../apps/metering/src/record/partitions';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.fixture';
import { usageEvent } from '../reconcile/books';
import { giveFormerRights, makeFormerSchema } from '../upgrade/former-version';

/** A configuration whose prices metering is to know for good. */
const PRICED = {
  current: { models: [{ id: 'sim', kind: 'chat', price: { input: '1', output: '2', request: '0' } }] },
  onChange: () => {},
} as unknown as ConfigSource;

// deploy/postgres/roles.sql and the migrations on a real server, begun from an installation of before, where each
// service's login owned its schema.
const SERVICES = ['auth', 'metering', 'billing'] as const;
type Service = (typeof SERVICES)[number];
const SCHEMAS = { auth: AUTH, metering: METERING, billing: BILLING };
const LOGINS = SERVICES.flatMap((name) => [name, `${name}_owner`]);
const POSTING = { postingIntervalMs: 0, now: () => new Date() };
const NOW_MS = Date.now();

const postgres = usePostgresServer({
  files: {
    '/roles.sql': readFileSync(resolve(__dirname, '../../deploy/postgres/roles.sql'), 'utf8'),
    ...Object.fromEntries(
      LOGINS.map((login) => [`/run/secrets/${login.replace('_', '-')}-database-password`, `pw-${login}\n`]),
    ),
  },
});
const url = (login: string, database = 'tollgate') =>
  `postgres://${login}:pw-${login}@127.0.0.1:${postgres.port}/${database}`;
const inside = (command: string, ...args: string[]) =>
  postgres.exec([command, '-p', String(postgres.port), '-U', 'postgres', ...args]);
const makeRoles = (database = 'tollgate') => inside('psql', '-qX', '-d', database, '-f', '/roles.sql');
const messages = { request: async () => ({}) } as unknown as Messages;

async function connected<T>(at: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: at });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
const ask = <R extends object>(at: string, sql: string) =>
  connected(at, async (client) => (await client.query<R>(sql)).rows);
/** SQLSTATE of the refusal; undefined where it was done. */
const refusal = (client: Client, sql: string) =>
  client.query(sql).then(
    () => undefined,
    (error: unknown) => sqlState(error) ?? String(error),
  );

/** A top-up and a debit of two cents, by the code of billing. */
async function book(dataSource: DataSource, tenantId: string): Promise<void> {
  await new TopUps(dataSource, messages, POSTING).add({
    tenantId,
    amountCents: 100,
    source: 'manual',
    ref: newId('msg'),
  });
  await new ChargeGatherer(dataSource, POSTING).gather([charge(tenantId, 2n * CENT)]);
  await new Poster(dataSource, POSTING).postDue();
}

async function withBilling<T>(work: (dataSource: DataSource) => Promise<T>, at = url('billing')): Promise<T> {
  const dataSource = await openBillingDatabase(at);
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

const tenantId = newId('ten');

/** As deploy/postgres/roles.sql and --migrate had it. */
beforeAll(async () => {
  await connected(postgres.url, async (admin) => {
    await admin.query('CREATE ROLE tollgate_billing NOLOGIN');
    for (const name of SERVICES) await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD 'pw-${name}'`);
    await admin.query('GRANT tollgate_billing TO billing');
    await admin.query('GRANT CREATE ON DATABASE tollgate TO auth, metering, billing');
    await admin.query('REVOKE ALL ON SCHEMA public FROM PUBLIC');
  });
  for (const name of SERVICES)
    await connected(url(name), async (client) => {
      await makeFormerSchema(client, name);
      if (name === 'billing') await giveFormerRights(client, BILLING);
    });
  await withBilling((dataSource) => book(dataSource, tenantId));
  await connected(url('metering'), async (client) => {
    await client.query('CREATE TABLE metering.usage_event_2025_01 (LIKE metering.usage_event INCLUDING ALL)');
    await client.query(
      `ALTER TABLE metering.usage_event ATTACH PARTITION metering.usage_event_2025_01
       FOR VALUES FROM ('req_0') TO ('req_00')`,
    );
  });
  // Of a service that runs meanwhile.
  const running = new Client({ connectionString: url('billing') });
  const cutOff = new Promise((ended) => running.on('error', ended));
  await running.connect();
  await running.query('BEGIN');
  await running.query('LOCK TABLE billing.tenant_books IN ROW EXCLUSIVE MODE');
  await makeRoles();
  await cutOff;
  for (const name of SERVICES) await migrate({ url: url(`${name}_owner`), ...SCHEMAS[name] });
});

it('an installation whose logins owned their schemas is moved over, and again changes nothing', async () => {
  await makeRoles();
  for (const name of SERVICES)
    expect(await migrate({ url: url(`${name}_owner`), ...SCHEMAS[name] })).toEqual({ applied: [] });
  const owners = await ask<{ schema: string; owner: string }>(
    postgres.url,
    `SELECT DISTINCT schema, pg_get_userbyid(owner) AS owner FROM (
       SELECT relnamespace::regnamespace::text AS schema, relowner AS owner FROM pg_class
       UNION ALL SELECT pronamespace::regnamespace::text, proowner FROM pg_proc
       UNION ALL SELECT typnamespace::regnamespace::text, typowner FROM pg_type
       UNION ALL SELECT nspname, nspowner FROM pg_namespace) o
     WHERE schema IN ('auth', 'metering', 'billing') ORDER BY 1, 2`,
  );
  expect(owners).toEqual([...SERVICES].sort().map((schema) => ({ schema, owner: `${schema}_owner` })));
});

it('the services find their schemas with their own logins, and do their work', async () => {
  for (const name of SERVICES) await checkSchema(url(name), SCHEMAS[name]);
  const tenants = [tenantId, newId('ten')];
  const { differences } = await withBilling(async (dataSource) => {
    for (const tenant of tenants) await book(dataSource, tenant);
    return auditLedger(dataSource, tenants);
  });
  expect(differences).toEqual([]);

  const metering = await openMeteringDatabase(url('metering'));
  try {
    await new Partitions(metering).ensure(NOW_MS);
    await new PriceVersions(metering, PRICED).onModuleInit();
    const event = usageEvent(tenantId, newId('key'), 5);
    expect(await new UsageConsumer(metering, ANY_PRICE).consume([event, event])).toMatchObject({ recorded: 1 });
    const [{ home, owner } = { home: '', owner: '' }] = await ask<{ home: string; owner: string }>(
      postgres.url,
      `SELECT tableoid::regclass::text AS home,
              (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = e.tableoid) AS owner
       FROM metering.usage_event e WHERE id = '${event.id}'`,
    );
    expect([home, owner]).toEqual([expect.stringMatching(/^metering\.usage_event_\d{4}_\d\d$/), 'metering_owner']);
  } finally {
    await metering.destroy();
  }
});

const NO_RIGHT = '42501';
/** Besides, DELETE is anybody's nowhere. */
const DELETABLE: Record<Service, string[]> = {
  auth: ['outbox'],
  metering: ['outbox', 'backend_unbilled'],
  billing: ['outbox', 'withdrawal_intent', 'reconcile_run'],
};

describe.each(SERVICES)('the login %s', (name) => {
  let client: Client;
  let tables: { schema: string; name: string }[];
  beforeAll(async () => {
    tables = await ask(
      postgres.url,
      `SELECT nspname AS schema, relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
       WHERE nspname IN ('auth', 'metering', 'billing') AND relkind IN ('r', 'p') ORDER BY 1, 2`,
    );
    client = new Client({ connectionString: url(name) });
    await client.connect();
  });
  afterAll(() => client.end());
  const own = () => tables.filter(({ schema }) => schema === name).map((table) => `${name}.${table.name}`);
  const others = () => tables.filter(({ schema }) => schema !== name).map((table) => `${table.schema}.${table.name}`);

  /** Refuses all of them, as itself and under the role that it takes on to serve. */
  async function refuses(...statements: string[]): Promise<void> {
    for (const role of [name, `tollgate_${name}`]) {
      await client.query(`SET ROLE ${role}`);
      for (const sql of statements) expect([role, sql, await refusal(client, sql)]).toEqual([role, sql, NO_RIGHT]);
      await client.query('RESET ROLE');
    }
  }

  it('neither switches off triggers nor drops, empties or changes the making of any table', async () => {
    expect(own().length).toBeGreaterThan(3);
    for (const table of own())
      await refuses(
        `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
        `ALTER TABLE ${table} ADD COLUMN x int`,
        `ALTER TABLE ${table} OWNER TO ${name}`,
        `DROP TABLE ${table} CASCADE`,
        `TRUNCATE ${table} CASCADE`,
        `CREATE RULE x AS ON INSERT TO ${table} DO INSTEAD NOTHING`,
        `CREATE TRIGGER x BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
      );
  });

  it('deletes only what is on its way, and changes no line that was written for good', async () => {
    const kept = own().filter((table) => !DELETABLE[name].some((one) => table === `${name}.${one}`));
    await refuses(...kept.map((table) => `DELETE FROM ${table}`));
    const appendOnly: Record<Service, string[]> = {
      auth: ['outbox_refused SET topic = topic', 'credential SET hash = hash', 'credential SET tenant_id = tenant_id'],
      metering: [
        'usage_event SET cost_nanos = 0',
        'outbox_refused SET topic = topic',
        'usage_hour SET tenant_id = tenant_id',
      ],
      billing: [
        ...['charge', 'journal_entry'].map((table) => `${table} SET id = id`),
        'journal_entry SET amount_cents = 1',
        'posting SET amount_cents = 1',
        'coverage SET amount_cents = 1',
        'invoice SET amount_cents = 1',
        'invoice_void SET entry_id = entry_id',
        'journal_chain SET hash = hash',
        'budget_event SET id = id',
        'tenant_books SET tenant_id = tenant_id',
        'rejected_charge SET reason = reason',
      ],
    };
    await refuses(...appendOnly[name].map((set) => `UPDATE ${name}.${set}`));
    if (name === 'billing')
      await refuses(`INSERT INTO billing.journal_chain VALUES ('${tenantId}', 99, 1, sha256('x'))`);
  });

  it('reads nothing of another service, and cannot become its owner, a superuser or another service', async () => {
    expect(others().length).toBeGreaterThan(10);
    await refuses(...others().map((table) => `SELECT FROM ${table} LIMIT 1`));
    const roles = [...LOGINS, ...SERVICES.map((one) => `tollgate_${one}`), 'postgres', 'pg_write_server_files'];
    await refuses(
      ...roles.filter((role) => role !== name && role !== `tollgate_${name}`).map((role) => `SET ROLE ${role}`),
      'SET SESSION AUTHORIZATION postgres',
      `GRANT ${name}_owner TO ${name}`,
      'SET session_replication_role = replica',
      `SELECT pg_read_file('/run/secrets/billing-owner-database-password')`,
      `COPY (SELECT 1) TO PROGRAM 'true'`,
    );
  });

  it('makes nothing', async () => {
    await refuses(
      `CREATE FUNCTION ${name}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
      `CREATE TABLE ${name}.t (id int)`,
      'CREATE TABLE public.t (id int)',
      'CREATE TEMPORARY TABLE t (id int)',
      'CREATE SCHEMA s',
      'CREATE DATABASE d',
      'CREATE ROLE r',
      `ALTER SCHEMA ${name} OWNER TO ${name}`,
      `ALTER ROLE ${name} CONNECTION LIMIT -1`,
    );
    const functions = await ask<{ signature: string }>(
      postgres.url,
      `SELECT oid::regprocedure AS signature FROM pg_proc WHERE pronamespace = '${name}'::regnamespace`,
    );
    await refuses(...functions.map(({ signature }) => `ALTER FUNCTION ${signature} RESET ALL`));
  });
});

it('a credential that is revoked stays revoked', async () => {
  await connected(url('auth'), async (client) => {
    const key = newId('key');
    await client.query(`INSERT INTO auth.tenant (id, name, plan) VALUES ('${tenantId}', 'T', 'default')`);
    await client.query(
      `INSERT INTO auth.credential (id, kind, tenant_id, name, hash, last4, profile, revoked_at)
       VALUES ('${key}', 'key', '${tenantId}', 'k', repeat('0', 64), 'last', 'default', now())`,
    );
    for (const set of ['revoked_at = NULL', `revoked_at = now() + interval '1 day'`, 'version = 0'])
      expect([set, await refusal(client, `UPDATE auth.credential SET ${set}`)]).toEqual([set, NO_RIGHT]);
    expect(
      await refusal(client, 'UPDATE auth.credential SET version = version + 1, projected_version = 1'),
    ).toBeUndefined();
  });
});

it('months are added by the one way that metering has, which takes a month and nothing else', async () => {
  await connected(url('metering'), async (client) => {
    const add = (...month: number[]) => refusal(client, `SELECT metering.add_month(${month.join(', ')})`);
    expect(await add(2031, 4)).toBeUndefined();
    for (const month of [
      [2019, 12],
      [2200, 1],
      [99999, 1],
    ])
      expect([month, await add(...month)]).toEqual([month, '22023']);
    expect(await add(2031, 13)).toBe('22008');
    expect(await refusal(client, `SELECT metering.id_bound(now())`)).toBe(NO_RIGHT);
  });
  expect(await connected(url('auth'), (client) => refusal(client, 'SELECT metering.add_month(2031, 5)'))).toBe(
    NO_RIGHT,
  );
});

it('an owner has its own schema alone, and makes no other', async () => {
  await connected(url('billing_owner'), async (client) => {
    for (const sql of [
      'SELECT FROM auth.credential',
      'SELECT FROM metering.usage_event',
      'SET ROLE auth_owner',
      'SET session_replication_role = replica',
      'CREATE SCHEMA s',
      'CREATE TEMPORARY TABLE t (id int)',
      'CREATE TABLE public.t (id int)',
    ])
      expect([sql, await refusal(client, sql)]).toEqual([sql, NO_RIGHT]);
  });
});

it('a backup is restored with its owners and rights, once the roles are there', async () => {
  await inside('pg_dump', '-Fc', '-d', 'tollgate', '-f', '/tmp/backup');
  await inside('createdb', 'restored');
  await makeRoles('restored');
  await inside('pg_restore', '--clean', '--if-exists', '-d', 'restored', '/tmp/backup');
  for (const name of SERVICES) {
    expect(await migrate({ url: url(`${name}_owner`, 'restored'), ...SCHEMAS[name] })).toEqual({ applied: [] });
    await checkSchema(url(name, 'restored'), SCHEMAS[name]);
  }
  const audit = await withBilling(
    async (dataSource) => {
      await book(dataSource, tenantId);
      return auditLedger(dataSource, [tenantId]);
    },
    url('billing', 'restored'),
  );
  expect(audit).toMatchObject({ differences: [], heads: [{ tenantId }] });
  await connected(url('billing', 'restored'), async (client) => {
    expect(await refusal(client, 'DELETE FROM billing.journal_entry')).toBe(NO_RIGHT);
    expect(await refusal(client, 'CREATE SCHEMA s')).toBe(NO_RIGHT);
  });
});

it('what was restored without its grants is given them again by --migrate', async () => {
  await inside('createdb', 'bare');
  await makeRoles('bare');
  await inside('pg_restore', '--clean', '--if-exists', '--no-privileges', '-d', 'bare', '/tmp/backup');
  await migrate({ url: url('billing_owner', 'bare'), ...BILLING });
  await withBilling((dataSource) => book(dataSource, tenantId), url('billing', 'bare'));
});
