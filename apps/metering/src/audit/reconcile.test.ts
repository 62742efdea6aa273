import { MAX_ROLLUP_AUDIT_MS, newId, UnavailableError } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import type { DataSource, EntityManager } from 'typeorm';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, KEY, usageEvent } from '../sample-events.fixture';
import { EventRanges } from './event-ranges';
import { BY_INDEX_SQL, HOURS_SQL, RollUpAudit } from './roll-up-audit';

// Metering's answers to reconcile. test/reconcile checks that reconcile finds errors through all services.
const database = useMeteringDatabase();
const EVENTS = 25;
const tenants = [newId('ten'), newId('ten'), newId('ten')];
const ids: string[] = [];

const WAITING = `
  SELECT FROM pg_locks WHERE NOT granted AND relation = 'metering.usage_event'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

beforeAll(async () => {
  const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  const events = Array.from({ length: EVENTS }, (_, i) =>
    usageEvent({
      tenantId: tenants[i % 3]!,
      keyId: i % 2 ? KEY : newId('key'),
      endedAt: new Date(Date.UTC(2026, 10, 1, i % 7)).toISOString(),
    }),
  );
  ids.push(...events.map(({ id }) => id).sort());
  await consumer.consume(events.slice(0, 15));
  await consumer.consume(events.slice(10));
});

describe('ranges of events', () => {
  const ranges = () => new EventRanges(database.dataSource);

  it('adjoin: their sums are those of the whole range, in parts of any size', async () => {
    const whole = await ranges().digest({ after: '', limit: 1_000 });
    expect(whole).toMatchObject({ events: EVENTS, end: null });
    for (const limit of [1, 4, 24, 25, 26]) {
      const sum = { events: 0, nanos: 0n, digest: 0n };
      for (let after: string | null = ''; after !== null;) {
        const part: Awaited<ReturnType<EventRanges['digest']>> = await ranges().digest({ after, limit });
        sum.events += part.events;
        sum.nanos += BigInt(part.costNanos);
        sum.digest += BigInt(part.digest);
        after = part.end;
      }
      expect(sum).toEqual({ events: EVENTS, nanos: BigInt(whole.costNanos), digest: BigInt(whole.digest) });
    }
  });

  it('list the same events, ascending, up to an id', async () => {
    const { data, end } = await ranges().list({ after: ids[2]!, until: ids[20]!, limit: 10 });
    expect([data.map(({ id }) => id), end]).toEqual([ids.slice(3, 13), ids[12]]);
    const rest = await ranges().list({ after: end!, until: ids[20]!, limit: 10 });
    expect([rest.data.map(({ id }) => id), rest.end]).toEqual([ids.slice(13, 21), null]);
    expect(await ranges().digest({ after: ids[2]!, until: ids[20]!, limit: 100 })).toMatchObject({ events: 18 });
  });

  it.each([0, 1.5, 50_001])('refuse a limit of %s', async (limit) => {
    const refused = { code: 'invalid_parameter' };
    await expect(ranges().digest({ after: '', limit })).rejects.toMatchObject(refused);
    await expect(ranges().list({ after: '', limit })).rejects.toMatchObject(refused);
  });
});

describe('the audit of the roll-ups', () => {
  // One row per part, so every edge between tenants and hours occurs.
  const audit = (rows = 1) => new RollUpAudit(database.dataSource, { events: 1, rows });
  const all = async (rows?: number) => {
    const differences = [];
    for (let after: string | null | undefined; after !== null;) {
      const page: Awaited<ReturnType<RollUpAudit['page']>> = await audit(rows).page(
        after === undefined ? {} : { after },
      );
      differences.push(...page.differences);
      after = page.nextCursor;
    }
    return differences;
  };

  it('finds nothing where roll-ups are the sums of their events, in parts of any size', async () => {
    for (const rows of [1, 2, 5, 100]) expect(await all(rows)).toEqual([]);
  });

  it('finds an hour without a roll-up, before, between and after the others', async () => {
    for (const hour of [0, 3, 6]) {
      const at = new Date(Date.UTC(2026, 10, 1, hour)).toISOString();
      await database.query('DELETE FROM metering.usage_hour WHERE tenant_id = $1 AND hour = $2', [tenants[1], at]);
      const found = (await all()).filter(({ check }) => check === 'a roll-up of an hour is the sum of its events');
      expect(found.map(({ tenantId, actual }) => [tenantId, actual])).toContainEqual([tenants[1], 'nothing']);
    }
  });

  it('names the first hundred of a part, and says that there are more', async () => {
    const tenantId = newId('ten');
    const stray = (keys: number) =>
      database.query(
        `INSERT INTO metering.usage_hour (tenant_id, hour, model, key_id, requests, prompt_tokens, cached_tokens,
           completion_tokens, estimated, cost_nanos)
         SELECT $1, '2026-11-01T00:00:00Z', 'sim', 'key_' || n, 1, 1, 0, 1, 0, 1
         FROM generate_series(1, $2::int) n
         ON CONFLICT DO NOTHING`,
        [tenantId, keys],
      );
    const after = `${tenantId} 2026-10-31T00:00:00Z`;
    const hours = async () => {
      const { differences, truncated } = await new RollUpAudit(database.dataSource).page({ after });
      const ofTenant = differences.filter((one) => one.tenantId === tenantId && one.check.includes('of an hour'));
      return [ofTenant.length, truncated];
    };
    await stray(100);
    expect(await hours()).toEqual([100, undefined]);
    await stray(101);
    expect(await hours()).toEqual([100, true]);
    await database.query('DELETE FROM metering.usage_hour WHERE tenant_id = $1', [tenantId]);
  });

  it('may take ten minutes, as its caller lets it', async () => {
    const timeouts: unknown[] = [];
    const dataSource = {
      transaction: (isolation: 'REPEATABLE READ', work: (tx: EntityManager) => Promise<unknown>) =>
        database.dataSource.transaction(isolation, async (tx) => {
          const answer = await work(tx);
          timeouts.push(...(await tx.query<unknown[]>('SHOW statement_timeout')));
          return answer;
        }),
    } as unknown as DataSource;
    await new RollUpAudit(dataSource).page({});
    expect(timeouts).toEqual([{ statement_timeout: `${MAX_ROLLUP_AUDIT_MS / 60_000}min` }]);
  });

  it('ends at once when its process stops', async () => {
    const audit = new RollUpAudit(database.dataSource);
    await database.query('BEGIN');
    await database.query('LOCK TABLE metering.usage_event IN ACCESS EXCLUSIVE MODE');
    const stopped = expect(audit.page({})).rejects.toEqual(new UnavailableError('metering is stopping'));
    await eventually(async () => expect(await database.query(WAITING)).toHaveLength(1));
    audit.beforeApplicationShutdown();
    await stopped;
    await database.query('ROLLBACK');
    await expect(audit.page({})).rejects.toThrow('metering is stopping');
  });

  it('reads a part by the index, although the planner would read all events for each part', async () => {
    const plan = await database.dataSource.transaction(async (tx) => {
      await tx.query(BY_INDEX_SQL);
      const hour = '2026-11-01T03:00:00Z';
      const part = [tenants[0], hour, tenants[0], hour];
      return JSON.stringify(await tx.query(`EXPLAIN ${HOURS_SQL}`, part));
    });
    expect(plan).not.toContain('Seq Scan');
    for (const index of [/on usage_event_\w*_tenant_id_ended_at_idx/, /usage_hour_pkey/]) expect(plan).toMatch(index);
  });

  it.each(['x', 'ten_x', 'ten_x 2026-11-01'])('refuses %j as a cursor', async (after) => {
    await expect(audit().page({ after })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });
});
