import { useTestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { openDataSource, transaction } from './database';
import { changedRows, query } from './statements';

const database = useTestDatabase();

describe('statements', () => {
  let dataSource: DataSource;
  beforeAll(async () => {
    dataSource = await openDataSource({ url: database.url, schema: 'public', applicationName: 'test', poolSize: 2 });
    await dataSource.query('CREATE TABLE thing (id int PRIMARY KEY, name text)');
  });
  afterAll(() => dataSource.destroy());

  it('gives the rows of every kind of statement in the same form', async () => {
    await transaction(dataSource, async (tx) => {
      const inserted = await query(tx, 'INSERT INTO thing VALUES (1, $1), (2, $1) RETURNING id', ['a']);
      expect(inserted).toEqual([{ id: 1 }, { id: 2 }]);
      expect(await query(tx, 'SELECT id, name FROM thing WHERE id = 2')).toEqual([{ id: 2, name: 'a' }]);
      expect(await query(tx, 'UPDATE thing SET name = $1 RETURNING name', ['b'])).toEqual([
        { name: 'b' },
        { name: 'b' },
      ]);
      expect(
        await query(tx, 'WITH one AS (SELECT 1 AS id) UPDATE thing t SET name = $1 FROM one WHERE t.id = one.id', [
          'c',
        ]),
      ).toEqual([]);
      expect(await query(tx, 'DELETE FROM thing WHERE id = 1 RETURNING name')).toEqual([{ name: 'c' }]);
      expect(await query(tx, 'DELETE FROM thing WHERE id = 1 RETURNING name')).toEqual([]);
    });
  });

  it('counts the rows that an UPDATE or a DELETE changed, and refuses any other statement', async () => {
    await query(dataSource, 'INSERT INTO thing VALUES (3, $1), (4, $1)', ['x']);
    expect(await changedRows(dataSource, 'UPDATE thing SET name = $1 WHERE id >= 3', ['y'])).toBe(2);
    expect(await changedRows(dataSource, 'DELETE FROM thing WHERE id = 3')).toBe(1);
    expect(await changedRows(dataSource, 'DELETE FROM thing WHERE id = 3')).toBe(0);
    await expect(changedRows(dataSource, 'SELECT 1')).rejects.toThrow(/only an UPDATE/);
  });
});
