import { UsageConsumer } from '../consume/usage-consumer';
import { openMeteringDatabase } from '../database';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { PartitionIndexes } from './partition-indexes';
import { Partitions } from './partitions';

const database = useMeteringDatabase();
const NOVEMBER_MS = Date.UTC(2026, 10, 21);

/** Whether PostgreSQL uses the index for the whole table. */
const isValid = async () => {
  const [row] = await database.query<{ indisvalid: boolean }>(
    `SELECT indisvalid FROM pg_index WHERE indexrelid = 'metering.usage_event_unfinished'::regclass`,
  );
  return row!.indisvalid;
};

describe('the index of unfinished requests', () => {
  it('is added to the partitions that lack it, by several processes at once, while events arrive', async () => {
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume([usageEvent({ outcome: 'expired' })]);
    expect(await isValid()).toBe(false);
    const others = await Promise.all([1, 2].map(() => openMeteringDatabase(database.url)));
    try {
      const sources = [database.dataSource, ...others];
      const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
      const [built] = await Promise.all([
        Promise.all(sources.map((source) => new PartitionIndexes(source).ensure())),
        ...Array.from({ length: 5 }, () => consumer.consume([usageEvent({ outcome: 'client_closed' })])),
      ]);
      expect(built.flat()).toEqual(['usage_event_default']);
    } finally {
      await Promise.all(others.map((other) => other.destroy()));
    }
    expect(await isValid()).toBe(true);
  });

  it('belongs to months that are made later, and nothing is left to build', async () => {
    await new Partitions(database.dataSource).ensure(NOVEMBER_MS);
    expect(await isValid()).toBe(true);
    expect(await new PartitionIndexes(database.dataSource).ensure()).toEqual([]);
  });

  it('is added, newest month first, to months of the version before', async () => {
    await database.query(`DROP INDEX metering.usage_event_unfinished`);
    await database.query(
      `CREATE INDEX usage_event_unfinished ON ONLY metering.usage_event (tenant_id, ended_at)
         INCLUDE (outcome, model, key_id) WHERE outcome <> 'complete'`,
    );
    expect(await new PartitionIndexes(database.dataSource).ensure()).toEqual([
      'usage_event_default',
      'usage_event_2027_01',
      'usage_event_2026_12',
      'usage_event_2026_11',
      'usage_event_2026_10',
    ]);
    expect(await isValid()).toBe(true);
  });

  it('does not delay a start, and a stop breaks its build off', async () => {
    await database.query(`DROP INDEX metering.usage_event_unfinished`);
    await database.query(
      `CREATE INDEX usage_event_unfinished ON ONLY metering.usage_event (tenant_id, ended_at)
         INCLUDE (outcome, model, key_id) WHERE outcome <> 'complete'`,
    );
    const writer = await openMeteringDatabase(database.url);
    try {
      await writer.transaction(async (tx) => {
        const copied = `(jsonb_populate_record(e, jsonb_build_object('id', 'req_under_way'))).*`;
        await tx.query(`INSERT INTO usage_event SELECT ${copied} FROM usage_event e LIMIT 1`);
        const indexes = new PartitionIndexes(database.dataSource);
        indexes.onModuleInit();
        await indexes.beforeApplicationShutdown();
      });
    } finally {
      await writer.destroy();
    }
    expect(await isValid()).toBe(false);
  });
});
