import { MIGRATIONS as ADMISSION, PostgresAdmissionStore } from '@tollgate/admission';
import { newId } from '@tollgate/contracts';
import { MIGRATIONS as CREDENTIALS } from '@tollgate/credentials';
import { checkMigrations, migrate } from '@tollgate/postgres';
import { PATIENT_CALL_MS, useTestDatabase, withDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { MIGRATIONS as AUTH } from '../../apps/auth/src/database';
import { MIGRATIONS as BILLING, openBillingDatabase } from '../../apps/billing/src/database';
import { auditLedger } from '../../apps/billing/src/reconcile/audit';
import { MIGRATIONS as METERING, openMeteringDatabase } from '../../apps/metering/src/database';
import { UsageQueries } from '../../apps/metering/src/query/usage-query';
import { UsageReads } from '../../apps/metering/src/query/usage-reads';
import { MIN_USAGE_KEPT_MONTHS, Retention } from '../../apps/metering/src/retain/retention';
import { confirmMonth, retiredMonths } from '../../apps/metering/src/retain/retired-months';
import { Fixture, TOKEN_NANOS } from '../../libs/admission/src/suite/store.fixture';
import { bookAsFormer } from './former-billing';
import { recordAsFormer } from './former-metering';
import { asFormerVersion, FormerAdmission, giveFormerRights, makeFormerSchema, type Schema } from './former-version';

// The upgrade of a database of the former version, with data in it, while a process of that version uses it. The
// schemas and the calls of that version are in former-version/ and former-version.ts.
const SCHEMAS = { auth: AUTH, metering: METERING, billing: BILLING, admission: ADMISSION, credentials: CREDENTIALS };
const WITH_RIGHTS: Schema[] = ['auth', 'metering', 'billing'];
/** Rounds of the former version's process after the upgrade. */
const ROUNDS_AFTER = 5;

/** The first one has a partition. */
const OLD_MONTHS = ['2025-01', '2025-02'];

const template = useTestDatabase();
const name = newId('msg');
const url = withDatabase(template.url, name);
const tenantId = newId('ten');
let client: Client;

const ask = async <Row extends object>(sql: string) => (await client.query<Row>(sql)).rows;
/** Migrates from two processes of this version at once. */
async function startTwo(schema: Schema): Promise<string[]> {
  const results = await Promise.all([1, 2].map(() => migrate({ url, ...SCHEMAS[schema] })));
  return results.flatMap(({ applied }) => applied);
}

/** Repeats `round` during `upgrade` and for some rounds after it. Rejects if either fails. */
async function during<T>(upgrade: () => Promise<T>, round: () => Promise<void>): Promise<T> {
  await round();
  let left = Number.POSITIVE_INFINITY;
  const rounds = (async () => {
    for (; left > 0; left--) await round();
  })();
  const upgraded = upgrade().finally(() => (left = ROUNDS_AFTER));
  for (const result of await Promise.allSettled([rounds, upgraded]))
    if (result.status === 'rejected') throw result.reason;
  return upgraded;
}

describe('a database of the former version', () => {
  beforeAll(async () => {
    await template.query(`CREATE DATABASE ${name}`);
    client = new Client({ connectionString: url });
    await client.connect();
    for (const schema of Object.keys(SCHEMAS) as Schema[]) {
      await makeFormerSchema(client, schema);
      if (WITH_RIGHTS.includes(schema)) await giveFormerRights(client, schema);
    }
  });
  afterAll(async () => {
    await client.end();
    await template.query(`DROP DATABASE ${name} WITH (FORCE)`);
  });

  it('admits and settles requests of both versions during the upgrade, and loses no hold', async () => {
    const former = await FormerAdmission.open(url);
    const store = new PostgresAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS });
    const fixture = new Fixture(() => Promise.resolve(store));
    fixture.tenantId = tenantId;
    fixture.nowMs = Date.now();
    await fixture.setUp();
    try {
      await former.setBalance(tenantId, 1, 10n ** 15n);
      // A live hold, a settled one, and one that will expire with delivered tokens.
      const [lives, settled, dies] = [fixture.request(), fixture.request(), fixture.request()];
      for (const request of [lives, settled, dies]) expect(await former.admit(request)).toBe('held');
      expect(await former.settle(fixture.event(settled.draft.id, 3n * TOKEN_NANOS))).toBe('settled');
      await former.progress(dies.draft.id, tenantId, {
        promptTokens: 0,
        cachedTokens: 0,
        completionTokens: 2,
        costNanos: String(2n * TOKEN_NANOS),
      });
      await ask(`UPDATE admission.hold SET deadline_ms = 0, progressed_ms = 0 WHERE id = '${dies.draft.id}'`);

      await ask(`INSERT INTO admission.tenant (tenant_id) VALUES ('limited')`);
      await ask(`INSERT INTO admission.key_state (tenant_id, key_id) VALUES ('limited', 'key')`);
      await ask(`INSERT INTO admission.bucket VALUES ('limited', '', 5, 6, 4), ('limited', 'key', 7, 8, 4)`);

      let served = 0;
      const applied = await during(
        () => startTwo('admission'),
        async () => {
          const request = fixture.request();
          expect(await former.admit(request)).toBe('held');
          expect(await former.settle(fixture.event(request.draft.id, TOKEN_NANOS))).toBe('settled');
          served++;
        },
      );
      expect(applied).toEqual([
        '015_functions.sql',
        '016_settle_in_place.sql',
        '017_claims.sql',
        '018_call_rates.sql',
        '019_model_means.sql',
        '020_buckets_in_rows.sql',
        'functions',
      ]);
      expect(served).toBeGreaterThan(ROUNDS_AFTER);
      const buckets = (table: string) =>
        ask(`SELECT requests_full_us, tokens_full_us, buckets_written_us FROM admission.${table}
          WHERE tenant_id = 'limited'`);
      const wroteAt = { buckets_written_us: '4' };
      expect(await buckets('tenant')).toEqual([{ ...wroteAt, requests_full_us: '5', tokens_full_us: '6' }]);
      expect(await buckets('key_state')).toEqual([{ ...wroteAt, requests_full_us: '7', tokens_full_us: '8' }]);

      const pending = await fixture.hold();
      // The former version's requests count too.
      expect(await store.expectedEnds([tenantId])).toMatchObject([[{ keyId: fixture.keyId }]]);
      expect(await fixture.settle(lives.draft.id, TOKEN_NANOS)).toMatchObject({ kind: 'settled', repeated: false });
      expect(await fixture.settle(settled.draft.id, 5n * TOKEN_NANOS)).toMatchObject({ repeated: true });
      expect(await fixture.sweep()).toMatchObject([
        { id: dies.draft.id, outcome: 'expired', costNanos: String(2n * TOKEN_NANOS), completionTokens: 2 },
      ]);
      // Three earlier requests with 1, 3 and 2 tokens, and one token for each request during the upgrade.
      expect(await fixture.sums()).toMatchObject({
        pendingHolds: 1,
        settledHolds: 3 + served,
        settledNanos: BigInt(6 + served) * TOKEN_NANOS,
      });
      await former.setBalance(tenantId, 2, 10n ** 15n, [settled.draft.id]);
      expect(await fixture.sums()).toMatchObject({ settledHolds: 2 + served });
      expect(await former.settle(fixture.event(pending, TOKEN_NANOS))).toBe('settled');
    } finally {
      await fixture.tearDown();
      await former.close();
    }
  });

  it('posts entries during the upgrade, and its books are sound', async () => {
    const dataSource = await openBillingDatabase(url);
    try {
      let booked = 0;
      const applied = await during(
        () => startTwo('billing'),
        async () => {
          await bookAsFormer(dataSource, tenantId);
          booked++;
        },
      );
      expect(applied).toEqual([
        '014_functions.sql',
        '015_audit_log.sql',
        '016_crossed_by_change.sql',
        '017_audit_people.sql',
        '018_dismissed_charges.sql',
        '019_erased_tenants.sql',
        'functions',
      ]);
      const audit = await auditLedger(dataSource, [tenantId]);
      expect(audit.differences).toEqual([]);
      const [{ entries, hashes } = { entries: 0, hashes: 0 }] = await ask<{ entries: number; hashes: number }>(
        `SELECT (SELECT count(*)::int FROM billing.journal_entry) AS entries,
           (SELECT count(*)::int FROM billing.journal_chain) AS hashes`,
      );
      expect([entries, hashes]).toEqual([2 * booked, 2 * booked]);
      await expect(ask('DELETE FROM billing.posting')).rejects.toThrow(/append-only/);
    } finally {
      await dataSource.destroy();
    }
  });

  it('keeps revocations, still adds months, and still notifies changes of credentials', async () => {
    const key = newId('key');
    await ask(
      `INSERT INTO auth.tenant (id, name, plan) VALUES ('${tenantId}', 'T', 'default');
     INSERT INTO auth.credential (id, kind, tenant_id, name, hash, last4, profile, revoked_at)
       VALUES ('${key}', 'key', '${tenantId}', 'k', repeat('0', 64), 'last', 'default', now());
     SET search_path TO metering; SELECT add_month(2030, 1); RESET search_path`,
    );
    await recordAsFormer(client, tenantId, OLD_MONTHS);
    expect(await startTwo('auth')).toEqual([
      '004_functions.sql',
      '005_operator_tokens.sql',
      '006_audit_log.sql',
      '007_key_owner_tags.sql',
      '008_tenants.sql',
      '009_key_rotation.sql',
      '010_drained_backends.sql',
      '011_key_models.sql',
      '012_audit_people.sql',
      '013_erasure_due.sql',
      'functions',
    ]);
    expect(await startTwo('metering')).toEqual([
      '005_functions.sql',
      '006_unfinished.sql',
      '007_refusals.sql',
      '008_caller_requests.sql',
      '009_reasoning_tokens.sql',
      '010_request_lives.sql',
      '011_backend_reports.sql',
      '012_retired_months.sql',
      '013_usage_days.sql',
      '014_folded_hours.sql',
      '015_dismissed_events.sql',
      '016_details_of_retired_months.sql',
      'functions',
    ]);
    expect(await startTwo('credentials')).toEqual(['002_functions.sql', '003_key_models.sql', 'functions']);
    await expect(ask('UPDATE auth.credential SET revoked_at = NULL')).rejects.toThrow(/stays revoked/);
    expect(await ask('SELECT metering.add_month(2030, 1) AS old, metering.add_month(2030, 2) AS new')).toEqual([
      { old: false, new: true },
    ]);
    const told = new Promise((resolve) => client.once('notification', resolve));
    await ask('LISTEN tollgate_credentials');
    await ask(
      `INSERT INTO credentials.credential (hash, kind, id, tenant_id, plan, profile, scopes, version, change)
       VALUES (repeat('0', 64), 'key', '${key}', '${tenantId}', 'default', 'default', '{}', 1, 1)`,
    );
    await told;
  });

  it('ends a month of usage events of the former version, and keeps its sums', async () => {
    const dataSource = await openMeteringDatabase(url);
    try {
      const retention = new Retention(dataSource, MIN_USAGE_KEPT_MONTHS);
      expect(await retention.round()).toEqual({ closed: OLD_MONTHS, summed: OLD_MONTHS, dropped: [], waiting: [] });
      for (const month of await retiredMonths(dataSource)) {
        expect(month).toMatchObject({ confirmed: false, events: 1, costNanos: '70' });
        expect(await confirmMonth(dataSource, month)).toBe(true);
      }
      await ask(`UPDATE metering.retired_month SET confirmed_at = now() - interval '25 hours'`);
      expect(await retention.round()).toEqual({ closed: [], summed: [], dropped: OLD_MONTHS, waiting: [] });
      expect(await ask(`SELECT FROM metering.usage_event WHERE tenant_id = '${tenantId}'`)).toEqual([]);
      const usage = { tenantId, from: `${OLD_MONTHS[0]}-01`, to: '2025-03-01', groupBy: [] };
      expect((await new UsageQueries(dataSource, new UsageReads(dataSource)).query(usage)).totals).toMatchObject({
        ...{ requests: 2, failed: 1, promptTokens: 6, completionTokens: 8, costNanos: '140' },
      });
    } finally {
      await dataSource.destroy();
    }
  });

  it('has the functions, triggers, owners and rights of a new database after the upgrade', async () => {
    const catalog = `
    SELECT format('%s %s %s %s %s', p.oid::regprocedure, proowner::regrole, prosecdef, proconfig, proacl) AS what,
        prosrc AS text
      FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
      WHERE nspname IN ('auth', 'metering', 'billing', 'admission', 'credentials')
    UNION ALL
    SELECT pg_get_triggerdef(t.oid), tgenabled::text FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
      WHERE NOT tgisinternal
        AND relnamespace::regnamespace::text IN ('auth', 'metering', 'billing', 'admission', 'credentials')
    ORDER BY 1`;
    const upgraded = await ask<{ what: string; text: string }>(catalog);
    expect(upgraded.length).toBeGreaterThan(70);
    expect(upgraded).toEqual(await template.query(catalog));
  });

  it('refuses and stays unchanged by a start of the former version after the upgrade', async () => {
    for (const migrations of Object.values(SCHEMAS))
      await asFormerVersion(migrations, async (former) => {
        for (const start of [migrate, checkMigrations])
          await expect(start({ url, ...former })).rejects.toThrow(/was migrated by a newer version of Tollgate/);
      });
    for (const schema of Object.keys(SCHEMAS)) expect(await startTwo(schema as Schema)).toEqual([]);
  });
});
