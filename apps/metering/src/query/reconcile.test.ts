import { newId } from '@tollgate/contracts';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.suite';
import { KEY, usageEvent } from '../sample-events.suite';
import { EventRanges } from './event-ranges';
import { RollUpAudit } from './roll-up-audit';

// What reconcile asks of metering; that it finds what is wrong, through all services: test/reconcile.
const database = useMeteringDatabase();
const EVENTS = 25;
const tenants = [newId('ten'), newId('ten'), newId('ten')];
const ids: string[] = [];

beforeAll(async () => {
  const consumer = new UsageConsumer(database.dataSource);
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

  it('adjoin: their sums are those of the whole, whatever their size', async () => {
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
  // One row a part: every edge between tenants and hours is met.
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

  it('finds an hour of which no roll-up tells, before, between and after those that tell', async () => {
    for (const hour of [0, 3, 6]) {
      const at = new Date(Date.UTC(2026, 10, 1, hour)).toISOString();
      await database.query('DELETE FROM metering.usage_hour WHERE tenant_id = $1 AND hour = $2', [tenants[1], at]);
      const found = (await all()).filter(({ check }) => check === 'a roll-up of an hour is the sum of its events');
      expect(found.map(({ tenantId, actual }) => [tenantId, actual])).toContainEqual([tenants[1], 'nothing']);
    }
  });

  it.each(['x', 'ten_x', 'ten_x 2026-11-01'])('refuses %j as a cursor', async (after) => {
    await expect(audit().page({ after })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });
});
