import { newId } from '@tollgate/contracts';
import { Client } from 'pg';
import {
  ask,
  book,
  connected,
  LOGINS,
  NO_RIGHT,
  refusal,
  SERVICES,
  type RolesServer,
  type Service,
  withBilling,
} from './roles-server';

/** The tables in which a service may delete rows. It may not in any other. */
const DELETABLE: Record<Service, string[]> = {
  auth: ['outbox', 'drained_backend'],
  metering: [
    ...['outbox', 'backend_unbilled', 'backend_hour', 'engine_hour', 'backend_report'],
    ...['refusal_hour', 'refused_request'],
  ],
  billing: ['outbox', 'withdrawal_intent', 'reconcile_run'],
  console: [
    ...['session', 'account', 'verification', 'twoFactor', 'passkey', 'rateLimit'],
    ...['user', 'membership', 'invitation', 'operator', 'provider_operator', 'recovery', 'erasure'],
  ],
};

/** The rights of the logins on an installed server. `tenantId` is a tenant with books. */
export function loginsTests(server: RolesServer, tenantId: string): void {
  describe.each(SERVICES)('the login %s', (name) => {
    let client: Client;
    let tables: { schema: string; name: string }[];
    beforeAll(async () => {
      tables = await ask(
        server.adminUrl,
        `SELECT nspname AS schema, relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
       WHERE nspname IN ('auth', 'metering', 'billing', 'console') AND relkind IN ('r', 'p') ORDER BY 1, 2`,
      );
      client = new Client({ connectionString: server.url(name) });
      await client.connect();
    });
    afterAll(() => client.end());
    const own = () => tables.filter(({ schema }) => schema === name).map((table) => `${name}."${table.name}"`);
    const others = () =>
      tables.filter(({ schema }) => schema !== name).map((table) => `${table.schema}."${table.name}"`);

    /** Expects that all statements are refused, to the login itself and to the role of the service. */
    async function refuses(...statements: string[]): Promise<void> {
      for (const role of [name, `tollgate_${name}`]) {
        await client.query(`SET ROLE ${role}`);
        for (const sql of statements) expect([role, sql, await refusal(client, sql)]).toEqual([role, sql, NO_RIGHT]);
        await client.query('RESET ROLE');
      }
    }

    it('can neither disable a trigger nor drop, empty or alter a table', async () => {
      expect(own().length).toBeGreaterThan(3);
      for (const table of own())
        await refuses(
          `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
          `ALTER TABLE ${table} ADD COLUMN x int`,
          `ALTER TABLE ${table} OWNER TO ${name}`,
          `DROP TABLE ${table} CASCADE`,
          `TRUNCATE ${table} CASCADE`,
          `CREATE RULE x AS ON INSERT TO ${table} DO INSTEAD NOTHING`,
          `CREATE TRIGGER x BEFORE INSERT ON ${table} FOR EACH ROW
           EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
        );
    });

    it('can delete only rows of temporary tables, and can change no permanent row', async () => {
      const kept = own().filter((table) => !DELETABLE[name].some((one) => table === `${name}."${one}"`));
      await refuses(...kept.map((table) => `DELETE FROM ${table}`));
      const appendOnly: Record<Service, string[]> = {
        auth: [
          'outbox_refused SET topic = topic',
          'credential SET hash = hash',
          'credential SET tenant_id = tenant_id',
          'tenant SET erased_at = now()',
          'audit_log SET author_name = NULL',
        ],
        metering: [
          'usage_event SET cost_nanos = 0',
          'outbox_refused SET topic = topic',
          'usage_hour SET tenant_id = tenant_id',
        ],
        console: [
          'operator SET user_id = user_id',
          'membership SET tenant_id = tenant_id',
          'first_issuer SET issuer = issuer',
          'invitation SET operator = true',
          'invitation SET token_hash = token_hash',
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
          'audit_log SET author_name = NULL',
          'erased_tenant SET erased_at = now()',
        ],
      };
      await refuses(...appendOnly[name].map((set) => `UPDATE ${name}.${set}`));
      if (name === 'billing')
        await refuses(
          `INSERT INTO billing.journal_chain VALUES ('${tenantId}', 99, 1, sha256('x'))`,
          `INSERT INTO billing.erased_tenant VALUES ('${tenantId}')`,
        );
    });

    it('can read no table of another service, and cannot become an owner, a superuser or another service', async () => {
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

    it('can create nothing', async () => {
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
        server.adminUrl,
        `SELECT oid::regprocedure AS signature FROM pg_proc WHERE pronamespace = '${name}'::regnamespace`,
      );
      await refuses(...functions.map(({ signature }) => `ALTER FUNCTION ${signature} RESET ALL`));
    });
  });

  it('a second login of a service works beside the first, so that passwords change without a stop', async () => {
    // As docs/operating/secrets.md says.
    const second = server.url('billing').replace('billing:pw-billing', 'billing_b:pw-second');
    await ask(
      server.adminUrl,
      `CREATE ROLE billing_b LOGIN PASSWORD 'pw-second' CONNECTION LIMIT 168 IN ROLE tollgate_billing;
       GRANT CONNECT ON DATABASE tollgate TO billing_b`,
    );
    try {
      await withBilling(server.url('billing'), async (before) => {
        // One replica has the second login already, the other one has not.
        await withBilling(second, (after) => book(after, newId('ten')));
        await book(before, newId('ten'));
        await ask(server.adminUrl, `ALTER ROLE billing PASSWORD 'pw-next'`);
        await expect(withBilling(server.url('billing'), async () => {})).rejects.toThrow(/password/);
        await withBilling(second, (after) => book(after, newId('ten')));
        await withBilling(server.url('billing').replace('pw-billing', 'pw-next'), (next) => book(next, newId('ten')));
      });
    } finally {
      await ask(server.adminUrl, 'REVOKE CONNECT ON DATABASE tollgate FROM billing_b; DROP ROLE billing_b');
      await ask(server.adminUrl, `ALTER ROLE billing PASSWORD 'pw-billing'`);
    }
    await expect(withBilling(second, async () => {})).rejects.toThrow();
  });

  it('auth cannot undo the revocation of a credential', async () => {
    await connected(server.url('auth'), async (client) => {
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

  it('only auth and billing erase a tenant, each in its own log, and only by a function', async () => {
    const [open, ended] = [newId('ten'), newId('ten')];
    const row = (schema: string, tenant: string) =>
      `INSERT INTO ${schema}.audit_log (id, at, author_kind, author_id, author_name, address, action, tenant_id)
       VALUES ('${newId('aud')}', now(), 'person', 'usr_1', 'anna', '10.1.1.1', 'budget.set', '${tenant}')`;
    const namesOf = async (client: Client, schema: string, tenant: string) => {
      const sql = `SELECT author_name AS name FROM ${schema}.audit_log WHERE tenant_id = $1`;
      return (await client.query<{ name: string | null }>(sql, [tenant])).rows.map(({ name }) => name);
    };
    await connected(server.url('auth'), async (client) => {
      for (const [id, status] of [
        [open, `'active', NULL`],
        [ended, `'closed', now()`],
      ])
        await client.query(
          `INSERT INTO auth.tenant (id, name, plan, status, closed_at) VALUES ('${id}', 'T', 'default', ${status});
           ${row('auth', id!)}; SELECT auth.begin_erasure('${id}');
           SELECT auth.erase_changes('${id}', '', 100); ${row('auth', id!)}`,
        );
      expect([await namesOf(client, 'auth', open), await namesOf(client, 'auth', ended)]).toEqual([
        ['anna', 'anna'],
        [null, null],
      ]);
      for (const sql of [
        'SELECT auth.erased(l) FROM auth.audit_log l',
        `SELECT billing.erase_changes('${ended}', '', 100)`,
        `UPDATE auth.audit_log SET author_name = 'bob' WHERE tenant_id = '${ended}'`,
      ])
        expect([sql, await refusal(client, sql)]).toEqual([sql, NO_RIGHT]);
    });
    await connected(server.url('billing'), async (client) => {
      await client.query(
        `${row('billing', ended)}; SELECT billing.erase_changes('${ended}', '', 100); ${row('billing', ended)}`,
      );
      expect(await namesOf(client, 'billing', ended)).toEqual([null, null]);
      for (const sql of ['SELECT billing.erased(l) FROM billing.audit_log l', `SELECT auth.begin_erasure('${open}')`])
        expect([sql, await refusal(client, sql)]).toEqual([sql, NO_RIGHT]);
    });
  });

  it('only metering can add a month, and only by a function that accepts nothing but a month', async () => {
    await connected(server.url('metering'), async (client) => {
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
    expect(await connected(server.url('auth'), (client) => refusal(client, 'SELECT metering.add_month(2031, 5)'))).toBe(
      NO_RIGHT,
    );
  });

  it('only metering can end a month of events, and only by functions that check it', async () => {
    await connected(server.url('metering'), async (client) => {
      expect(await refusal(client, 'SELECT metering.close_month(2)')).toBe('22023');
      for (const call of [
        `confirm_month('2025-01-01', 0, 0, 0)`,
        'sum_month()',
        'drop_month()',
        'forget_callers(10)',
        'kept_from()',
      ])
        expect([call, await refusal(client, `SELECT metering.${call}`)]).toEqual([call, undefined]);
      for (const sql of [
        `INSERT INTO metering.retired_month (month, from_id, until_id) VALUES ('2026-01-01', '', 'req_1')`,
        'UPDATE metering.retired_month SET confirmed_at = now()',
        'DELETE FROM metering.dropped_unfinished',
        'DELETE FROM metering.caller_request',
        'DROP TABLE metering.usage_event_default',
      ])
        expect([sql, await refusal(client, sql)]).toEqual([sql, NO_RIGHT]);
    });
    expect(await connected(server.url('auth'), (client) => refusal(client, 'SELECT metering.drop_month()'))).toBe(
      NO_RIGHT,
    );
  });

  it('an owner can use only its own schema, and can create no other', async () => {
    await connected(server.url('billing_owner'), async (client) => {
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
}
