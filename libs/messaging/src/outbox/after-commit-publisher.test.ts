import { UnavailableError, type BalanceUpdate } from '@tollgate/contracts';
import { openDataSource, transaction } from '@tollgate/postgres';
import { configureLogging } from '@tollgate/runtime';
import { OUTBOX_TABLE_SQL, useTestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { balanceUpdate, TOPIC } from '../messages-store.fixture';
import { MessagesRefusedError } from '../messages';
import { AfterCommitPublisher } from './after-commit-publisher';

// Publishing fails on purpose here; each failure would log a warning.
configureLogging({ level: 'silent', pretty: false });
const database = useTestDatabase();

describe('publishing after the commit of a batch', () => {
  let dataSource: DataSource;
  let publisher: AfterCommitPublisher;
  let published: unknown[];
  /** What the brokers do with a call. */
  let answer: () => Promise<void>;

  beforeAll(async () => {
    await database.query('CREATE SCHEMA shop');
    dataSource = await openDataSource({ url: database.url, schema: 'shop', applicationName: 'shop', poolSize: 4 });
    await dataSource.query(OUTBOX_TABLE_SQL);
  });
  afterAll(() => dataSource.destroy());
  beforeEach(async () => {
    await dataSource.query('TRUNCATE outbox');
    published = [];
    answer = async () => {};
    const publish = async (topic: string, messages: readonly unknown[]) => {
      await answer();
      published.push(...messages.map((message) => [topic, message]));
    };
    publisher = new AfterCommitPublisher(dataSource, { publish } as never, { name: 'shop' });
  });

  const within = (...updates: BalanceUpdate[]) => transaction(dataSource, (tx) => publisher.within(tx, TOPIC, updates));
  const stored = async () =>
    (await dataSource.query<{ data: unknown }[]>('SELECT data FROM outbox ORDER BY id')).map(({ data }) => data);
  const [first, second] = [balanceUpdate('a', 1), balanceUpdate('a', 2)];

  it('stores nothing while the topic can be written', async () => {
    expect(await within(first)).toEqual([first]);
    await publisher.publish(TOPIC, [first]);
    expect([published, await stored()]).toEqual([[[TOPIC, first]], []]);
  });

  it.each([
    ['cannot be written', new UnavailableError('not now')],
    ['refuses a message', new MessagesRefusedError('never')],
  ])('stores the messages if the topic %s, and those of the next batches in their transaction', async (_, error) => {
    answer = () => Promise.reject(error);
    await publisher.publish(TOPIC, [first]);
    expect(await stored()).toEqual([first]);
    expect(await within(second)).toEqual([]);
    expect([published, await stored()]).toEqual([[], [first, second]]);
  });

  it('tries again a minute after a failure, and other topics at once', async () => {
    const now = jest.spyOn(performance, 'now').mockReturnValue(1_000);
    try {
      answer = () => Promise.reject(new UnavailableError('not now'));
      await publisher.publish(TOPIC, [first]);
      const news = { tenantId: 'a', plan: 'p', status: 'active' } as never;
      expect(await transaction(dataSource, (tx) => publisher.within(tx, 'tenant-news', [news]))).toEqual([news]);
      now.mockReturnValue(60_999);
      expect(await within(second)).toEqual([]);
      now.mockReturnValue(61_000);
      expect(await within(second)).toEqual([second]);
    } finally {
      now.mockRestore();
    }
  });

  it('rejects when neither the topic nor the outbox takes the messages', async () => {
    answer = () => Promise.reject(new UnavailableError('not now'));
    await database.query('ALTER TABLE shop.outbox ADD CONSTRAINT refuse CHECK (false)');
    try {
      await expect(publisher.publish(TOPIC, [first])).rejects.toThrow(/refuse/);
    } finally {
      await database.query('ALTER TABLE shop.outbox DROP CONSTRAINT refuse');
    }
  });
});
