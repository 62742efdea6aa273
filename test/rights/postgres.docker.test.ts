import { newId } from '@tollgate/contracts';
import { checkSchema, migrate } from '@tollgate/postgres';
import type { ConfigSource } from '@tollgate/runtime';
import { Client } from 'pg';
import { auditLedger } from '../../apps/billing/src/reconcile/audit';
import { UsageConsumer } from '../../apps/metering/src/consume/usage-consumer';
import { openMeteringDatabase } from '../../apps/metering/src/database';
import { PriceVersions } from '../../apps/metering/src/record/price-versions';
import { Partitions } from '../../apps/metering/src/record/partitions';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.fixture';
import { usageEvent } from '../reconcile/books';
import { bookAsFormer } from '../upgrade/former-billing';
import { giveFormerRights, makeFormerSchema } from '../upgrade/former-version';
import { loginsTests } from './logins.part';
import {
  ask,
  book,
  connected,
  LOGINS,
  NO_RIGHT,
  refusal,
  SCHEMAS,
  SERVICES,
  useRolesServer,
  withBilling,
} from './roles-server';

/** A configuration whose prices metering records. */
const PRICED = {
  current: { models: [{ id: 'sim', kind: 'chat', price: { input: '1', output: '2', request: '0' } }] },
  onChange: () => {},
} as unknown as ConfigSource;

// Real: a PostgreSQL server with deploy/postgres/roles.sql and the migrations. It begins as an installation of an older
// version, in which the login of each service owned its schema.
/** The services that the older version had. */
const FORMER = ['auth', 'metering', 'billing'] as const;
const NOW_MS = Date.now();
const server = useRolesServer();
const tenantId = newId('ten');

/** Makes the older installation, then runs deploy/postgres/roles.sql and --migrate. */
beforeAll(async () => {
  await connected(server.adminUrl, async (admin) => {
    await admin.query('CREATE ROLE tollgate_billing NOLOGIN');
    for (const name of FORMER) await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD 'pw-${name}'`);
    await admin.query('GRANT tollgate_billing TO billing');
    await admin.query('GRANT CREATE ON DATABASE tollgate TO auth, metering, billing');
    await admin.query('REVOKE ALL ON SCHEMA public FROM PUBLIC');
  });
  for (const name of FORMER)
    await connected(server.url(name), async (client) => {
      await makeFormerSchema(client, name);
      if (name === 'billing') await giveFormerRights(client, 'billing');
    });
  await withBilling(server.url('billing'), (dataSource) => bookAsFormer(dataSource, tenantId));
  await connected(server.url('metering'), async (client) => {
    await client.query('CREATE TABLE metering.usage_event_2025_01 (LIKE metering.usage_event INCLUDING ALL)');
    await client.query(
      `ALTER TABLE metering.usage_event ATTACH PARTITION metering.usage_event_2025_01
       FOR VALUES FROM ('req_0') TO ('req_00')`,
    );
  });
  // A service that is running meanwhile holds a lock.
  const running = new Client({ connectionString: server.url('billing') });
  const cutOff = new Promise((ended) => running.on('error', ended));
  await running.connect();
  await running.query('BEGIN');
  await running.query('LOCK TABLE billing.tenant_books IN ROW EXCLUSIVE MODE');
  await server.makeRoles();
  await cutOff;
  for (const name of SERVICES) await migrate({ url: server.url(`${name}_owner`), ...SCHEMAS[name] });
});

it('an older installation gets the new owners, and a repeat changes nothing', async () => {
  await server.makeRoles();
  for (const name of SERVICES)
    expect(await migrate({ url: server.url(`${name}_owner`), ...SCHEMAS[name] })).toEqual({ applied: [] });
  const owners = await ask<{ schema: string; owner: string }>(
    server.adminUrl,
    `SELECT DISTINCT schema, pg_get_userbyid(owner) AS owner FROM (
       SELECT relnamespace::regnamespace::text AS schema, relowner AS owner FROM pg_class
       UNION ALL SELECT pronamespace::regnamespace::text, proowner FROM pg_proc
       UNION ALL SELECT typnamespace::regnamespace::text, typowner FROM pg_type
       UNION ALL SELECT nspname, nspowner FROM pg_namespace) o
     WHERE schema IN ('auth', 'metering', 'billing', 'console') ORDER BY 1, 2`,
  );
  expect(owners).toEqual([...SERVICES].sort().map((schema) => ({ schema, owner: `${schema}_owner` })));
});

it('the services find their schemas and work with their own logins', async () => {
  for (const name of SERVICES) await checkSchema(server.url(name), SCHEMAS[name]);
  const tenants = [tenantId, newId('ten')];
  const { differences } = await withBilling(server.url('billing'), async (dataSource) => {
    for (const tenant of tenants) await book(dataSource, tenant);
    return auditLedger(dataSource, tenants);
  });
  expect(differences).toEqual([]);

  const metering = await openMeteringDatabase(server.url('metering'));
  try {
    await new Partitions(metering).ensure(NOW_MS);
    await new PriceVersions(metering, PRICED).onModuleInit();
    const event = usageEvent(tenantId, newId('key'), 5);
    expect(await new UsageConsumer(metering, ANY_PRICE).consume([event, event])).toMatchObject({ recorded: 1 });
    const [{ home, owner } = { home: '', owner: '' }] = await ask<{ home: string; owner: string }>(
      server.adminUrl,
      `SELECT tableoid::regclass::text AS home,
              (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = e.tableoid) AS owner
       FROM metering.usage_event e WHERE id = '${event.id}'`,
    );
    expect([home, owner]).toEqual([expect.stringMatching(/^metering\.usage_event_\d{4}_\d\d$/), 'metering_owner']);
  } finally {
    await metering.destroy();
  }
});

it('without one of the passwords roles.sql changes nothing, and names the files', async () => {
  await expect(server.makeRolesWithout('/run/secrets/metering-owner-database-password')).rejects.toThrow(
    /missing or empty: metering-owner-database-password\s/,
  );
  for (const login of LOGINS) expect(await ask(server.url(login), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('no text of a statement that the server keeps has a password', async () => {
  await ask(server.adminUrl, 'CREATE EXTENSION pg_stat_statements');
  await ask(server.adminUrl, 'SELECT pg_stat_statements_reset()');
  await server.makeRoles();
  const kept = await ask<{ query: string }>(server.adminUrl, 'SELECT query FROM pg_stat_statements');
  expect(kept.filter(({ query }) => query.includes('CONNECTION LIMIT'))).toHaveLength(LOGINS.length);
  expect(kept.filter(({ query }) => query.includes('pw-'))).toEqual([]);
  await ask(server.adminUrl, 'DROP EXTENSION pg_stat_statements');
});

it('a failure of roles.sql names the login, and not its password', async () => {
  await ask(server.adminUrl, 'CREATE ROLE other_admin LOGIN CREATEROLE');
  await ask(server.adminUrl, 'GRANT CONNECT ON DATABASE tollgate TO other_admin');
  const failure = server.inside('psql', '-qX', '-U', 'other_admin', '-d', 'tollgate', '-f', '/roles.sql');
  await expect(failure).rejects.toThrow(/the password of auth could not be set: permission denied to alter role/);
  await expect(failure).rejects.not.toThrow(/pw-/);
  await ask(server.adminUrl, 'DROP OWNED BY other_admin');
  await ask(server.adminUrl, 'DROP ROLE other_admin');
});

loginsTests(server, tenantId);

it('a backup is restored with its owners and rights after the roles were created', async () => {
  await server.inside('pg_dump', '-Fc', '-d', 'tollgate', '-f', '/tmp/backup');
  await server.inside('createdb', 'restored');
  await server.makeRoles('restored');
  await server.inside('pg_restore', '--clean', '--if-exists', '-d', 'restored', '/tmp/backup');
  for (const name of SERVICES) {
    expect(await migrate({ url: server.url(`${name}_owner`, 'restored'), ...SCHEMAS[name] })).toEqual({ applied: [] });
    await checkSchema(server.url(name, 'restored'), SCHEMAS[name]);
  }
  const audit = await withBilling(server.url('billing', 'restored'), async (dataSource) => {
    await book(dataSource, tenantId);
    return auditLedger(dataSource, [tenantId]);
  });
  expect(audit).toMatchObject({ differences: [], heads: [{ tenantId }] });
  await connected(server.url('billing', 'restored'), async (client) => {
    expect(await refusal(client, 'DELETE FROM billing.journal_entry')).toBe(NO_RIGHT);
    expect(await refusal(client, 'CREATE SCHEMA s')).toBe(NO_RIGHT);
  });
});

it('--migrate grants the rights again after a restore without them', async () => {
  await server.inside('createdb', 'bare');
  await server.makeRoles('bare');
  await server.inside('pg_restore', '--clean', '--if-exists', '--no-privileges', '-d', 'bare', '/tmp/backup');
  await migrate({ url: server.url('billing_owner', 'bare'), ...SCHEMAS.billing });
  await withBilling(server.url('billing', 'bare'), (dataSource) => book(dataSource, tenantId));
});
