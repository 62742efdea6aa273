import type { Charge } from '@tollgate/contracts';
import { AfterCommitPublisher, type Messages } from '@tollgate/messaging';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { UsageConsumer } from './usage-consumer';

// Real: PostgreSQL. The brokers are the test's own.
const database = useMeteringDatabase();
const count = async (table: string) =>
  Number((await database.query<{ n: string }>(`SELECT count(*) AS n FROM metering.${table}`))[0]!.n);

it('events are charged by the next delivery if the process died between the commit and the publication', async () => {
  const [first, second] = [usageEvent(), usageEvent()];
  const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  const published: Charge[] = [];
  let publish: (charges: readonly Charge[]) => Promise<void> = async (charges) => void published.push(...charges);
  const messages = {
    publish: (_topic: string, charges: readonly Charge[]) => publish(charges),
  } as unknown as Messages;
  const publisher = new AfterCommitPublisher(database.dataSource, messages, { name: 'metering' });
  await new Promise<void>((died) => {
    publish = () => {
      died();
      return new Promise(() => {});
    };
    void consumer.consume([first], publisher);
  });
  expect([await count('usage_event'), await count('outbox')]).toEqual([1, 0]);
  publish = async (charges) => void published.push(...charges);
  expect(await consumer.consume([first, second], publisher)).toMatchObject({ recorded: 1, repeated: 1 });
  expect(published.map(({ id }) => id).sort()).toEqual([first.id, second.id]);
  expect(await count('outbox')).toBe(0);
});

it.each([
  ['what PostgreSQL cannot store', '"\\u0000"'],
  ['what cannot be written', `${'['.repeat(20_000)}${']'.repeat(20_000)}`],
])('a charge has no further member of the default budgets, such as %s', async (_, json) => {
  await database.query('TRUNCATE metering.outbox');
  const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  const other: unknown = JSON.parse(json);
  const events = [{ tenantCents: 5, other }, { keyCents: 0 }].map((defaultBudgets) => usageEvent({ defaultBudgets }));
  expect(await consumer.consume(events)).toMatchObject({ recorded: 2, rejected: 0 });
  const charges = await database.query<{ data: Charge }>('SELECT data FROM metering.outbox ORDER BY id');
  expect(charges.map(({ data }) => data.defaultBudgets)).toEqual([{ tenantCents: 5 }, { keyCents: 0 }]);
});
