import { idBound, newId } from '@tollgate/contracts';
import { UsageConsumer } from '../consume/usage-consumer';
import { openMeteringDatabase } from '../database';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { Partitions } from './partitions';

const database = useMeteringDatabase();
const NOVEMBER_MS = Date.UTC(2026, 10, 21);
/** The first instant of December 2026. */
const DECEMBER_MS = Date.UTC(2026, 11, 1);

const partitions = async () =>
  (
    await database.query<{ name: string }>(
      `SELECT inhrelid::regclass::text AS name
       FROM pg_inherits
       WHERE inhparent = 'metering.usage_event'::regclass
       ORDER BY 1`,
    )
  ).map((row) => row.name.replace('metering.', ''));
/** Request ids by the partition that holds them. */
const homes = async () =>
  Object.fromEntries(
    (
      await database.query<{ id: string; home: string }>(
        `SELECT id, tableoid::regclass::text AS home FROM metering.usage_event`,
      )
    ).map(({ id, home }) => [id, home.replace('metering.', '')]),
  );
/** An id of a given instant. newId itself never goes back in time within a process. */
const idAt = (ms: number) => idBound('req', ms).slice(0, 14) + newId('req').slice(14);

describe('partitions of usage_event', () => {
  it('are made for the months around now, by any number of processes at once, while events arrive', async () => {
    const others = await Promise.all([1, 2].map(() => openMeteringDatabase(database.url)));
    try {
      const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
      const writing = Array.from({ length: 5 }, () =>
        consumer.consume(Array.from({ length: 20 }, () => usageEvent({ id: idAt(Date.UTC(2020, 0, 5)) }))),
      );
      await Promise.all([...others, database.dataSource].map((source) => new Partitions(source).ensure(NOVEMBER_MS)));
      await Promise.all(writing);
    } finally {
      await Promise.all(others.map((other) => other.destroy()));
    }
    expect(await partitions()).toEqual([
      'usage_event_2026_10',
      'usage_event_2026_11',
      'usage_event_2026_12',
      'usage_event_2027_01',
      'usage_event_default',
    ]);
    expect(Object.values(await homes())).toEqual(Array(100).fill('usage_event_default'));
  });

  it('divide the months at midnight UTC, to the millisecond', async () => {
    const [last, first] = [usageEvent({ id: idAt(DECEMBER_MS - 1) }), usageEvent({ id: idAt(DECEMBER_MS) })];
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume([first, last]);
    expect(await homes()).toMatchObject({ [last.id]: 'usage_event_2026_11', [first.id]: 'usage_event_2026_12' });
  });

  it('get the rows of their month from the default partition, and ids stay unique throughout', async () => {
    const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
    const march = usageEvent({ id: idAt(Date.UTC(2027, 2, 9)) });
    const june = usageEvent({ id: idAt(Date.UTC(2027, 5, 1)) });
    await consumer.consume([march, june]);
    expect(await homes()).toMatchObject({ [march.id]: 'usage_event_default', [june.id]: 'usage_event_default' });
    await new Partitions(database.dataSource).ensure(Date.UTC(2027, 2, 1));
    expect(await homes()).toMatchObject({ [march.id]: 'usage_event_2027_03', [june.id]: 'usage_event_default' });
    expect(await consumer.consume([march, june])).toMatchObject({ recorded: 0, repeated: 2 });
  });

  it('have the indexes of the parent table', async () => {
    const rows = await database.query<{ indexdef: string }>(
      `SELECT indexdef FROM pg_indexes WHERE tablename = 'usage_event_2026_11'`,
    );
    const indexes = rows.map(({ indexdef }) => indexdef.replace(/^.*USING btree /, '')).sort();
    expect(indexes).toEqual([
      '(id)',
      '(tenant_id, ended_at)',
      "(tenant_id, ended_at) INCLUDE (outcome, model, key_id) WHERE (outcome <> 'complete'::metering.outcome)",
    ]);
  });
});
