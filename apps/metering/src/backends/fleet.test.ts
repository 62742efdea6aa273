import { MAX_REPORTED_BACKENDS, newId, RequestError, type BackendReport } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { useMeteringDatabase } from '../metering-database.fixture';
import { meteringFleet, priceVersions, recordReport } from './fleet';

const database = useMeteringDatabase();
const ONE: BackendReport = { backend: 'http://one', healthy: true, openBreakers: 0, inFlight: 2 };
const report = (backends: BackendReport[], source = newId('msg')) =>
  recordReport(database.dataSource, { source, backends });

it('a backend is shown with what all gateways of the last seconds say of it', async () => {
  const source = newId('msg');
  await report([ONE, { ...ONE, backend: 'http://two' }], source);
  await report([{ ...ONE, inFlight: 5 }], source);
  await report([{ ...ONE, healthy: false, openBreakers: 3, inFlight: 1 }]);
  const { backends } = await meteringFleet(database.dataSource);
  expect(backends).toEqual([
    { backend: 'http://one', gateways: 2, unhealthy: 1, broken: 1, inFlight: 6 },
    { backend: 'http://two', gateways: 1, unhealthy: 0, broken: 0, inFlight: 2 },
  ]);
  // Its process has ended.
  await database.query(`UPDATE metering.backend_report SET reported_at = now() - interval '1 hour'`);
  expect((await meteringFleet(database.dataSource)).backends).toEqual([]);
  await report([{ ...ONE, backend: 'http://three' }]);
  expect(await database.query('SELECT backend FROM metering.backend_report')).toEqual([{ backend: 'http://three' }]);
});

it('usage, settled money and what waits are sums over all tenants', async () => {
  await database.query(`INSERT INTO metering.tenant_sum VALUES ('a', 1, 7), ('b', 1, 8)`);
  await database.query(
    `INSERT INTO metering.outbox (topic, data, created_at) VALUES ('charges', '{}', now() - interval '90 seconds')`,
  );
  // Again if an hour ends between the two.
  await eventually(async () => {
    await database.query('TRUNCATE metering.backend_hour');
    await database.query(
      `INSERT INTO metering.backend_hour
       SELECT date_trunc('hour', now()) - make_interval(hours => h), 'b', 0, 10, 0, 100, 0, 50, 0, 0, 0, 0
       FROM unnest(ARRAY[0, 23, 24]) h`,
    );
    const fleet = await meteringFleet(database.dataSource);
    expect(fleet).toMatchObject({ requests: 20, promptTokens: 200, completionTokens: 100, settledNanos: '15' });
    expect(fleet.chargesAgeSeconds).toBeGreaterThanOrEqual(90);
  });
});

it('prices are listed newest first', async () => {
  await database.query(
    `INSERT INTO metering.price_version
     VALUES ('m', 'chat', 'v1', 1, 1, 2, 0, now() - interval '1 day'), ('m', 'chat', 'v2', 3, 1, 4, 5, now())`,
  );
  const { data } = await priceVersions(database.dataSource);
  expect(data.filter(({ model }) => model === 'm')).toMatchObject([
    { version: 'v2', inputFemtos: '3', outputFemtos: '4', requestNanos: '5' },
    { version: 'v1', inputFemtos: '1' },
  ]);
});

it.each<[string, () => [BackendReport[], string?]]>([
  ['no source', () => [[ONE], 'gateway']],
  ['too many backends', () => [Array(MAX_REPORTED_BACKENDS + 1).fill(ONE)]],
  ['a count below zero', () => [[{ ...ONE, inFlight: -1 }]]],
  ['a long name', () => [[{ ...ONE, backend: 'x'.repeat(300) }]]],
  ['a state that is text', () => [[{ ...ONE, healthy: 'yes' as never }]]],
])('a report with %s is refused', async (_what, given) => {
  await expect(report(...given())).rejects.toThrow(RequestError);
});
