import { NestFactory } from '@nestjs/core';
import { openDataSource, transaction } from '@tollgate/postgres';
import { eventually, OUTBOX_TABLE_SQL, useTestDatabase } from '@tollgate/testing';
import type { Messages } from '../messages';
import { balanceUpdate, TOPIC } from '../messages-store.fixture';
import { enqueue } from '../outbox/outbox';
import { Outbox } from './outbox';

const database = useTestDatabase();

it('an outbox publishes from the start of the application, and what was left at its end', async () => {
  await database.query('CREATE SCHEMA shop');
  const dataSource = await openDataSource({ url: database.url, schema: 'shop', applicationName: 'shop', poolSize: 2 });
  await dataSource.query(OUTBOX_TABLE_SQL);
  const published: unknown[] = [];
  const messages = { publish: async (_topic: string, sent: unknown[]) => void published.push(...sent) };
  const put = (version: number) =>
    transaction(dataSource, (tx) => enqueue(tx, TOPIC, [balanceUpdate('ten_1', version)]));
  const useFactory = () => new Outbox(dataSource, messages as unknown as Messages, { name: 'shop' });
  const app = await NestFactory.createApplicationContext(
    { module: class Shop {}, providers: [{ provide: Outbox, useFactory }] },
    { logger: false, abortOnError: false },
  );

  const outbox = app.get(Outbox);
  try {
    await put(1);
    outbox.wake();
    await eventually(async () => expect(published).toEqual([balanceUpdate('ten_1', 1)]));
    await put(2);
    await app.close();
    expect(published).toEqual([1, 2].map((version) => balanceUpdate('ten_1', version)));
  } finally {
    await outbox.stop();
    await dataSource.destroy();
  }
});
