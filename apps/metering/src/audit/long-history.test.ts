import { newId, type Difference } from '@tollgate/contracts';
import type { DataSource, EntityManager } from 'typeorm';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { UsageDays } from '../record/usage-days';
import { ANY_PRICE, KEY, usageEvent } from '../sample-events.fixture';
import { RollUpAudit } from './roll-up-audit';

// The audit of a tenant whose history has many parts.
const database = useMeteringDatabase();
const HOUR_MS = 3_600_000;
const DAYS = 40;
const START = '2026-03-01T00:00:00.000Z';
const END_MS = Date.parse(START) + DAYS * 24 * HOUR_MS;
/** Two rows an hour: of two keys. */
const ROWS_OF_A_DAY = 48;
const PART = { events: 10_000, rows: 150 };
const [BEFORE, LONG, AFTER] = [newId('ten'), newId('ten'), newId('ten')].sort() as [string, string, string];
const hour = (n: number) => new Date(Date.parse(START) + n * HOUR_MS).toISOString();
const LAST = DAYS * 24 - 1;

beforeAll(async () => {
  const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  await consumer.consume([BEFORE, LONG, AFTER].map((tenantId) => usageEvent({ tenantId, endedAt: START })));
  const one = 'SELECT * FROM metering.usage_event WHERE tenant_id = $1';
  await database.query(
    `INSERT INTO metering.usage_event
     SELECT changed.* FROM (${one}) e, generate_series(0, $2::int) n, (VALUES ($3), ('key_other')) AS key (id),
       jsonb_populate_record(NULL::metering.usage_event, to_jsonb(e) || jsonb_build_object(
         'id', e.id || n || key.id, 'key_id', key.id, 'ended_at', e.ended_at + n * interval '1 hour',
         'outcome', CASE WHEN n % 10 = 0 THEN 'client_closed' ELSE 'complete' END)) AS changed
     WHERE n > 0 OR key.id <> $3`,
    [LONG, LAST, KEY],
  );
  await database.query('DELETE FROM metering.usage_hour WHERE tenant_id = $1', [LONG]);
  await database.query(
    `INSERT INTO metering.usage_hour (tenant_id, hour, model, key_id, requests, prompt_tokens, cached_tokens,
       completion_tokens, estimated, cost_nanos)
     SELECT tenant_id, date_trunc('hour', ended_at), model, key_id, 1, prompt_tokens, cached_tokens, completion_tokens,
       0, cost_nanos FROM (${one}) e`,
    [LONG],
  );
  await database.query(
    `UPDATE metering.tenant_sum SET (events, cost_nanos) = (SELECT count(*), sum(cost_nanos) FROM (${one}) e)
     WHERE tenant_id = $1`,
    [LONG],
  );
  await new UsageDays(database.dataSource).fold(END_MS + 3 * HOUR_MS);
  await database.query('VACUUM ANALYZE');
});

/** All parts, and the rows that each has read from tables and indexes. */
async function audit() {
  const differences: Difference[] = [];
  const rows: number[] = [];
  const dataSource = {
    transaction: (isolation: 'REPEATABLE READ', work: (tx: EntityManager) => Promise<unknown>) =>
      database.dataSource.transaction(isolation, async (tx) => {
        const before = await rowsRead(tx);
        const answer = await work(tx);
        rows.push((await rowsRead(tx)) - before);
        return answer;
      }),
  } as unknown as DataSource;
  for (let after: string | null | undefined; after !== null;) {
    const page: Awaited<ReturnType<RollUpAudit['page']>> = await new RollUpAudit(dataSource, PART).page(
      after === undefined ? {} : { after },
    );
    differences.push(...page.differences);
    after = page.nextCursor;
  }
  return { differences, rows };
}

async function rowsRead(tx: EntityManager): Promise<number> {
  const [row] = await tx.query<{ rows: string }[]>(
    `SELECT sum(pg_stat_get_xact_tuples_returned(oid)) AS rows
     FROM pg_class WHERE relnamespace = 'metering'::regnamespace AND relkind IN ('r', 'i')`,
  );
  return Number(row!.rows);
}

const found = async () => (await audit()).differences.map(({ check, tenantId }) => [tenantId, check]);
const OF_HOUR = 'a roll-up of an hour is the sum of its events';
const OF_DAY = 'a roll-up of a day is the sum of its hours';
const OF_KEY = 'a roll-up of a key is the sum of its hours';
const OF_MODEL = 'a roll-up of a model is the sum of its hours';
const OF_TENANT = 'the roll-up of a tenant is the sum of its events';

describe('the audit of a long history', () => {
  it('finds nothing in correct roll-ups, and reads a bounded number of rows in each part', async () => {
    const { differences, rows } = await audit();
    expect(differences).toEqual([]);
    expect(rows.length).toBeGreaterThan((DAYS * ROWS_OF_A_DAY) / PART.rows);
    // The end of the part, and each row of its hours and of its first day by each of the checks.
    expect(Math.max(...rows)).toBeLessThan(10 * (PART.rows + ROWS_OF_A_DAY));
  });

  it.each([
    ['first', 0],
    ['last of the first day', 23],
    ['first after the first part', PART.rows / 2],
    ['middle', LAST >> 1],
    ['last', LAST],
  ])('finds a change of each sum once: the %s hour', async (_, n) => {
    const at = hour(n);
    const day = `${at.slice(0, 10)}T00:00:00Z`;
    const change = (table: string, time: string, where = '', tokens = 1) =>
      database.query(
        `UPDATE metering.${table} SET prompt_tokens = prompt_tokens + ${tokens}
         WHERE tenant_id = $1 AND ${time} ${where}`,
        [LONG],
      );
    const ofKey = `AND key_id = 'key_other'`;
    await change('usage_hour', `hour = '${at}'`, ofKey);
    expect(await found()).toEqual([OF_HOUR, OF_DAY, OF_KEY, OF_MODEL].map((check) => [LONG, check]));
    await change('usage_hour', `hour = '${at}'`, ofKey, -1);
    const folded = async (tokens: number) => {
      await change('usage_day', `day = '${day}'`, ofKey, tokens);
      await change('key_day', `day = '${day}'`, ofKey, tokens);
      await change('model_hour', `hour = '${at}'`, '', tokens);
    };
    await folded(1);
    expect((await found()).sort()).toEqual([OF_DAY, OF_KEY, OF_MODEL].map((check) => [LONG, check]));
    await folded(-1);
  });

  it('finds a wrong sum of the tenant once', async () => {
    const change = (events: number) =>
      database.query('UPDATE metering.tenant_sum SET events = events + $1 WHERE tenant_id = $2', [events, LONG]);
    await change(1);
    expect(await found()).toEqual([[LONG, OF_TENANT]]);
    await change(-1);
  });

  it('finds that the sum of the tenant is missing', async () => {
    const rename = (from: string, to: string) =>
      database.query('UPDATE metering.tenant_sum SET tenant_id = $2 WHERE tenant_id = $1', [from, to]);
    const other = `${LONG}_`;
    await rename(LONG, other);
    expect(await found()).toEqual([LONG, other].map((tenantId) => [tenantId, OF_TENANT]));
    await rename(other, LONG);
  });

  it('finds nothing if a late event is recorded between two parts', async () => {
    const pages = new RollUpAudit(database.dataSource, PART);
    let page = await pages.page({});
    for (let n = 0; n < 5; n++) page = await pages.page({ after: page.nextCursor! });
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume([usageEvent({ tenantId: LONG, endedAt: START })]);
    const differences = [];
    for (; page.nextCursor !== null; differences.push(...page.differences))
      page = await pages.page({ after: page.nextCursor });
    expect(differences).toEqual([]);
    expect(await found()).toEqual([]);
  });
});
