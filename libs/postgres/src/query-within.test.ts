import { useTestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { queryWithin } from './query-within';

const PATIENT_MS = 60_000;
const SHORT_MS = 50;
const NAME = 'query-within';
const database = useTestDatabase();
let client: Client;

beforeEach(async () => {
  client = new Client({ connectionString: database.url, application_name: NAME });
  client.on('error', () => {});
  await client.connect();
});

afterEach(() => client.end());

it('a query resolves to the result', async () => {
  const { rows } = await queryWithin(client, { text: 'SELECT $1::int AS n', values: [7] }, PATIENT_MS);
  expect(rows).toEqual([{ n: 7 }]);
});

it("a query rejects with the server's error, and the connection is of use afterwards", async () => {
  await expect(queryWithin(client, { text: 'SELECT 1 / 0' }, PATIENT_MS)).rejects.toMatchObject({ code: '22012' });
  const { rows } = await queryWithin(client, { text: 'SELECT 1 AS n' }, PATIENT_MS);
  expect(rows).toEqual([{ n: 1 }]);
});

it('a query rejects when the time is over, whatever the server does', async () => {
  const silence = queryWithin(client, { text: 'SELECT pg_sleep(3600)' }, SHORT_MS);
  await expect(silence).rejects.toThrow('Query read timeout');
  await database.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [NAME]);
});

it('a query rejects when its connection ends', async () => {
  const answer = queryWithin(client, { text: 'SELECT pg_terminate_backend(pg_backend_pid())' }, PATIENT_MS);
  await expect(answer).rejects.toThrow();
});
