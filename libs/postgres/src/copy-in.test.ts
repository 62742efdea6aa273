import { useTestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { copyInOn } from './copy-in';
import { openDataSource, transaction } from './database';

let dataSource: DataSource;
// Before the database's own hook: hooks run in the order of their declaration.
afterAll(() => dataSource.destroy());
const database = useTestDatabase();
const COPY = 'COPY thing (name, events, cost) FROM STDIN';
const copy = (sql: string, rows: string) => transaction(dataSource, async (tx) => (await copyInOn(tx))(sql, rows));
const stored = () => database.query('SELECT name, events FROM thing ORDER BY name');

beforeAll(async () => {
  dataSource = await openDataSource({ url: database.url, schema: 'public', applicationName: 'test', poolSize: 2 });
  await dataSource.query('CREATE TABLE thing (name text PRIMARY KEY, events bigint NOT NULL, cost numeric NOT NULL)');
});
beforeEach(() => database.query('TRUNCATE thing'));

describe('COPY from memory', () => {
  it('writes many rows, and text unchanged', async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => `ä\\\\${i}\t${i}\t0\n`).join('');
    await copy(COPY, rows);
    expect(await stored()).toHaveLength(20_000);
    expect((await stored())[0]).toEqual({ name: 'ä\\0', events: '0' });
  });

  it.each([
    ['a statement that the server refuses', 'COPY nowhere FROM STDIN', 'x\t1\t1\n'.repeat(50_000), '42P01'],
    ['a row that does not fit', COPY, `a\t1\t1\nb\tone\t1\n${'c\t1\t1\n'.repeat(50_000)}`, '22P02'],
    ['a row that is there twice', COPY, 'a\t1\t1\na\t1\t1\n', '23505'],
  ])('rejects %s, leaves nothing, and keeps the connection usable', async (_, sql, rows, code) => {
    for (let i = 0; i < 10; i++) await expect(copy(sql, rows)).rejects.toMatchObject({ code });
    expect(await stored()).toEqual([]);
    await copy(COPY, 'a\t1\t1\n');
    expect(await stored()).toEqual([{ name: 'a', events: '1' }]);
  });
});
