import { newId } from '@tollgate/contracts';
import { migrate, sqlState } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIGRATIONS, openMeteringDatabase } from '../../apps/metering/src/database';
import { RollUpAudit } from '../../apps/metering/src/audit/roll-up-audit';
import { UsageQueries } from '../../apps/metering/src/query/usage-query';
import { UsageReads } from '../../apps/metering/src/query/usage-reads';
import { UsageDays } from '../../apps/metering/src/record/usage-days';

// The version with the migrations up to 013 folded whole days, and did not count how requests ended.
const BEFORE = 14;
const NAMES = readdirSync(MIGRATIONS.directory)
  .filter((file) => !Number.isNaN(Number.parseInt(file, 10)))
  .sort();
const MISSING = NAMES.filter((file) => Number.parseInt(file, 10) >= BEFORE);
const DAY_MS = 86_400_000;
const OUTCOMES = ['complete', 'upstream_error', 'client_closed', 'complete'];
const COST_NANOS = 70;

const database = useTestDatabase();
const [tenantId, lateTenantId] = [newId('ten'), newId('ten')];
const keyId = newId('key');
const dayMs = (Math.floor(Date.now() / DAY_MS) - 3) * DAY_MS;
const [from, to] = [dayMs, dayMs + DAY_MS].map((ms) => new Date(ms).toISOString());

async function migrateBefore(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'former-'));
  try {
    for (const name of NAMES.filter((file) => !MISSING.includes(file)))
      cpSync(join(MIGRATIONS.directory, name), join(directory, name));
    await database.query('DROP SCHEMA metering CASCADE');
    await migrate({ url: database.url, schema: MIGRATIONS.schema, directory });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** As that version did it. */
async function record(tenant = tenantId): Promise<void> {
  for (const outcome of OUTCOMES)
    await database.query(
      `INSERT INTO metering.usage_event (started_at, ended_at, cost_nanos, overrun_nanos, input_femtos,
         cached_input_femtos, output_femtos, request_nanos, prompt_tokens, cached_tokens, completion_tokens, kind,
         outcome, stream, estimated, id, tenant_id, key_id, model, price_version)
       VALUES ($1, $1, $2, 0, 0, 0, 0, $2, 3, 1, 4, 'chat', $3, false, false, $4, $5, $6, 'm', 'v')`,
      [from, COST_NANOS, outcome, newId('req'), tenant, keyId],
    );
  const sums = [OUTCOMES.length, 3 * OUTCOMES.length, OUTCOMES.length, 4 * OUTCOMES.length, 0];
  await database.query(
    `INSERT INTO metering.usage_hour (tenant_id, hour, model, key_id, requests, prompt_tokens, cached_tokens,
       completion_tokens, estimated, cost_nanos)
     VALUES ($1, $2, 'm', $3, $4, $5, $6, $7, $8, $9)`,
    [tenant, from, keyId, ...sums, COST_NANOS * OUTCOMES.length],
  );
  await database.query('INSERT INTO metering.tenant_sum VALUES ($1, $2, $3)', [
    ...[tenant, OUTCOMES.length, COST_NANOS * OUTCOMES.length],
  ]);
}

const SUMS = `requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, estimated, cost_nanos`;
/** As that version did it, in the order of its statements. */
async function foldAsBefore(): Promise<void> {
  await database.query(`INSERT INTO metering.usage_day (tenant_id, day, model, key_id, ${SUMS})
    SELECT tenant_id, hour, model, key_id, ${SUMS} FROM metering.usage_hour`);
  await database.query(`INSERT INTO metering.model_hour (tenant_id, hour, model, ${SUMS})
    SELECT tenant_id, hour, model, ${SUMS} FROM metering.usage_hour`);
  await database.query('UPDATE metering.usage_folded SET until = $1', [to]);
}

it('sums of days that were folded before begin from the start, and every answer is right meanwhile', async () => {
  await migrateBefore();
  await record();
  await foldAsBefore();
  const results = await Promise.all([1, 2].map(() => migrate({ url: database.url, ...MIGRATIONS })));
  expect(results.flatMap(({ applied }) => applied)).toEqual([...MISSING, 'functions']);

  // A process of that version that still runs finds nothing folded. Rows that it would add without counts are refused.
  expect(await foldAsBefore().catch(sqlState)).toBe('23502');
  const dataSource = await openMeteringDatabase(database.url);
  try {
    const answers = async () => {
      const queries = new UsageQueries(dataSource, new UsageReads(dataSource));
      const asked = [
        { groupBy: ['day', 'model'] as const },
        { groupBy: ['key'] as const },
        { groupBy: [], keyId, model: 'm' },
      ];
      const all = [];
      for (const one of asked)
        all.push((await queries.query({ tenantId, from: from!, to: to!, ...one, groupBy: [...one.groupBy] })).totals);
      return all;
    };
    const right = expect.objectContaining({
      ...{ requests: 4, failed: 1, clientClosed: 1, promptTokens: 12, completionTokens: 16, costNanos: '280' },
    });
    expect(await answers()).toEqual([right, right, right]);
    // Hours are folded, their day is not. A process of that version adds a late event to neither.
    expect(await new UsageDays(dataSource).fold(dayMs + DAY_MS / 2)).toBeGreaterThan(0);
    expect(await answers()).toEqual([right, right, right]);
    await record(lateTenantId);
    const late = () => database.query('SELECT requests FROM metering.model_hour WHERE tenant_id = $1', [lateTenantId]);
    expect(await late()).toEqual([]);
    expect(await new UsageDays(dataSource).fold()).toBeGreaterThan(0);
    expect(await late()).toEqual([{ requests: '4' }]);
    expect(await database.query('SELECT failed, client_closed FROM metering.key_day')).toEqual([
      { failed: '1', client_closed: '1' },
      { failed: '1', client_closed: '1' },
    ]);
    expect(await answers()).toEqual([right, right, right]);
    expect((await new RollUpAudit(dataSource).page({})).differences).toEqual([]);
  } finally {
    await dataSource.destroy();
  }
});
