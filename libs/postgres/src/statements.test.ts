import { useTestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { openDataSource, sqlState, transaction } from './database';
import { changedRows, query, queryPrepared, withStatementTimeout } from './statements';

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

  it('takes no snapshot when it sets the timeout of a transaction', async () => {
    const seen = await dataSource.transaction('REPEATABLE READ', async (tx) => {
      const within = await withStatementTimeout(tx, 7_000);
      await query(dataSource, `INSERT INTO thing VALUES (5, 'new')`);
      return within(`SELECT name, current_setting('statement_timeout') AS timeout FROM thing WHERE id = 5`, []);
    });
    expect(seen).toEqual([{ name: 'new', timeout: '7s' }]);
  });

  it('prepares a statement once a connection, in its transaction, and names its errors like any other', async () => {
    const insert = (id: number) =>
      transaction(dataSource, async (tx) => {
        const rows = await queryPrepared(tx, 'INSERT INTO thing SELECT $1::int, $2 RETURNING id', [id, 'p']);
        const plans = await query(
          tx,
          `SELECT FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO thing SELECT%'`,
        );
        if (id === 12) throw new Error('no');
        return { rows, plans: plans.length };
      });
    for (const id of [10, 11]) expect(await insert(id)).toEqual({ rows: [{ id }], plans: 1 });
    await expect(insert(12)).rejects.toThrow('no');
    expect(sqlState(await insert(11).catch((error: unknown) => error))).toBe('23505');
    expect(await query(dataSource, 'SELECT id FROM thing WHERE id >= 10 ORDER BY id')).toEqual([
      { id: 10 },
      { id: 11 },
    ]);
  });
});
