import { MAX_COMPARED_HOURS } from '@tollgate/contracts';
import { useMeteringDatabase } from '../metering-database.fixture';
import { compareBackends } from './compare';
import { OldHours } from './old-hours';

// Real: PostgreSQL, with the rights of the service.
const database = useMeteringDatabase();
const NOW = Date.parse('2026-03-01T10:30:00.000Z');
const TABLES = ['backend_hour', 'engine_hour'];

const oldHours = () => new OldHours(database.dataSource);
const left = () =>
  Promise.all(
    TABLES.map((table) =>
      database.query<{ age: number }>(
        `SELECT extract(epoch FROM date_trunc('hour', $1::timestamptz) - hour)::int / 3600 AS age
         FROM metering.${table} ORDER BY hour`,
        [new Date(NOW)],
      ),
    ),
  ).then((tables) => tables.map((rows) => rows.map(({ age }) => age)));

/** A row of each table that began this number of hours before the present one. */
async function addHour(age: number): Promise<void> {
  const hour = `date_trunc('hour', $1::timestamptz) - make_interval(hours => $2)`;
  await database.query(
    `INSERT INTO metering.backend_hour SELECT ${hour}, 'http://gpu/v1', 0, 1, 0, 1, 0, 1, 0, 0, 0, 0`,
    [new Date(NOW), age],
  );
  await database.query(
    `INSERT INTO metering.engine_hour
     SELECT ${hour}, 'http://gpu/metrics', '{http://gpu/v1}', true, NULL, NULL, 1, 1, 0`,
    [new Date(NOW), age],
  );
}

beforeEach(() => database.query('TRUNCATE metering.backend_hour, metering.engine_hour'));

it('hours that a comparison can cover are kept, and older ones are deleted', async () => {
  const ages = [9_000, MAX_COMPARED_HOURS + 1, MAX_COMPARED_HOURS, 1, 0];
  for (const age of ages) await addHour(age);
  const compared = () => compareBackends(database.dataSource, { hours: MAX_COMPARED_HOURS }, NOW);
  const before = await compared();
  await oldHours().delete(NOW);
  expect(await left()).toEqual([ages.slice(2), ages.slice(2)]);
  expect(await compared()).toEqual(before);
});

it('an old hour to which a late event is being added is left to the next round, which does not wait', async () => {
  for (const age of [9_001, 9_000]) await addHour(age);
  await database.dataSource.transaction(async (tx) => {
    await tx.query('UPDATE backend_hour SET requests = 2 WHERE hour = (SELECT min(hour) FROM backend_hour)');
    await oldHours().delete(NOW);
  });
  expect(await left()).toEqual([[9_001], []]);
  await Promise.all([oldHours().delete(NOW), oldHours().delete(NOW)]);
  expect(await left()).toEqual([[], []]);
});
