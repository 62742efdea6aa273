import { connectionOf, transaction } from '@tollgate/postgres';
import { useMeteringDatabase } from '../metering-database.fixture';
import { copyIn } from './copy-in';

const database = useMeteringDatabase();
const COPY = 'COPY tenant_sum (tenant_id, events, cost_nanos) FROM STDIN';
const copy = (sql: string, rows: string) =>
  transaction(database.dataSource, async (tx) => copyIn(await connectionOf(tx), sql, rows));
const stored = () => database.query('SELECT tenant_id, events FROM metering.tenant_sum ORDER BY tenant_id');

beforeEach(() => database.query('TRUNCATE metering.tenant_sum'));

describe('copyIn', () => {
  it('writes many rows, and text unchanged', async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => `ä\\\\${i}\t${i}\t0\n`).join('');
    await copy(COPY, rows);
    expect(await stored()).toHaveLength(20_000);
    expect((await stored())[0]).toEqual({ tenant_id: 'ä\\0', events: '0' });
  });

  it.each([
    ['a statement that the server refuses', 'COPY nowhere FROM STDIN', 'x\t1\t1\n'.repeat(50_000), '42P01'],
    ['a row that does not fit', COPY, `a\t1\t1\nb\tone\t1\n${'c\t1\t1\n'.repeat(50_000)}`, '22P02'],
    ['a row that is there twice', COPY, 'a\t1\t1\na\t1\t1\n', '23505'],
  ])('rejects %s, leaves nothing, and keeps the connection usable', async (_, sql, rows, code) => {
    for (let i = 0; i < 10; i++) await expect(copy(sql, rows)).rejects.toMatchObject({ code });
    expect(await stored()).toEqual([]);
    await copy(COPY, 'a\t1\t1\n');
    expect(await stored()).toEqual([{ tenant_id: 'a', events: '1' }]);
  });
});
