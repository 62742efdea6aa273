import { newId, UnavailableError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { useTestDatabase } from '@tollgate/testing';
import { useBilling } from '../testing/billing.fixture';
import { AuditController } from './audit.controller';
import { erasePerson, MAX_ROWS_PER_BATCH } from './erase-person';

const database = useTestDatabase();

describe('a person that is erased from the audit log', () => {
  const billing = useBilling(database);
  let audit: AuditController;
  beforeAll(() => {
    audit = new AuditController(billing.dataSource, new ServiceClient(billing.messages));
  });

  /** Adds changes of an author. Returns their ids. */
  const changes = async (count: number, userId: string, kind = 'person') => {
    const ids = Array.from({ length: count }, () => newId('aud'));
    await database.query(
      `INSERT INTO billing.audit_log (id, at, author_kind, author_id, author_name, address, action, after)
       SELECT id, now(), $3, $2, 'anna@example.org', '10.1.1.1', 'budget.set', '{"cents": 7}'
       FROM unnest($1::text[]) AS id`,
      [ids, userId, kind],
    );
    return ids;
  };
  const state = async (ids: string[]) => {
    const [row] = await database.query<{ named: number; kept: number; transactions: number }>(
      `SELECT count(*) FILTER (WHERE author_name IS NOT NULL OR address IS NOT NULL)::int AS named,
         count(*) FILTER (WHERE after ->> 'cents' = '7')::int AS kept,
         count(DISTINCT xmin::text)::int AS transactions
       FROM billing.audit_log WHERE id = ANY ($1)`,
      [ids],
    );
    return row!;
  };

  it('loses its name and address in batches, each in a transaction of its own, and nobody else does', async () => {
    const many = 2 * MAX_ROWS_PER_BATCH + 500;
    const [own, others, token] = [
      await changes(many, 'usr_anna'),
      await changes(3, 'usr_bert'),
      await changes(3, 'usr_anna', 'token'),
    ];
    for (let time = 0; time < 2; time++) {
      expect(await audit.erasePerson({ userId: 'usr_anna' })).toEqual({ erased: true });
      expect(await state(own)).toEqual({ named: 0, kept: many, transactions: 3 });
    }
    for (const ids of [others, token]) expect(await state(ids)).toMatchObject({ named: 3, kept: 3 });
  });

  it('with very many changes takes several tries, and a repeat finds what was written meanwhile', async () => {
    const first = await changes(25, 'usr_carl');
    const oneBatch = () => erasePerson(billing.dataSource, 'usr_carl', { batchRows: 10, tryMs: 0 });
    await expect(oneBatch()).rejects.toThrow(UnavailableError);
    expect(await state(first)).toMatchObject({ named: 15 });
    const ids = [...first, ...(await changes(5, 'usr_carl'))];
    await expect(oneBatch()).rejects.toThrow(UnavailableError);
    expect(await state(ids)).toMatchObject({ named: 10 });
    await expect(oneBatch()).rejects.toThrow(UnavailableError);
    await oneBatch();
    expect(await state(ids)).toEqual({ named: 0, kept: 30, transactions: 3 });
  });

  it('has rows that nobody changes in another way, not even the owner of the schema', async () => {
    const [id] = await changes(1, 'usr_dora');
    await erasePerson(billing.dataSource, 'usr_dora');
    for (const fields of [`author_name = 'x'`, `after = '{}'`, `author_name = NULL, address = NULL`])
      await expect(database.query(`UPDATE billing.audit_log SET ${fields} WHERE id = $1`, [id])).rejects.toThrow(
        /append-only/,
      );
  });
});
