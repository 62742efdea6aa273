import { type Author, newId, UnavailableError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { recordChange } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { useBilling } from '../testing/billing.fixture';
import { AuditController } from './audit.controller';
import { eraseChanges } from './erase-changes';

const database = useTestDatabase();

describe('a tenant that is erased from the audit log', () => {
  const billing = useBilling(database);
  let audit: AuditController;
  beforeAll(() => {
    audit = new AuditController(billing.dataSource, new ServiceClient(billing.messages));
  });

  const by = (kind: Author['kind'], id: string): Author => ({
    ...{ kind, id, name: `${id}@example.org`, address: '10.1.1.1', requestId: 'r' },
  });
  const person = by('person', 'usr_anna');
  const token = { ...by('token', 'tok_1'), name: null };
  const operator = by('operator', 'opr_olaf');
  const log = async (tenantId: string) => (await audit.list({ tenantId, limit: 200 })).data;
  const change = (tenantId: string, author: Author, cents: number) =>
    recordChange(billing.dataSource.manager, author, {
      ...{ action: 'budget.set', tenantId, before: { cents: 0 }, after: { cents } },
    });
  const customer = async () => {
    const tenantId = await billing.tenant(0);
    const entry = { tenantId, amountCents: 500, source: 'manual', ref: 'invoice-7', reason: 'paid' };
    await billing.topUps.add({ ...entry, by: person });
    for (const author of [person, token, operator]) await change(tenantId, author, 70);
    return tenantId;
  };
  const nameless = (author: Author) => ({ ...author, name: null, address: null });

  it('loses its people, and keeps ids, times, amounts, texts of entries and operators', async () => {
    const [tenantId, bystander] = [await customer(), await customer()];
    billing.closedTenants.add(tenantId);
    const [before, others] = [await log(tenantId), await log(bystander)];
    const entries = await billing.entries(tenantId);

    for (let time = 0; time < 2; time++) expect(await audit.eraseTenant({ tenantId })).toEqual({ erased: true });
    expect(await log(tenantId)).toEqual(
      before.map((row) => (row.by.kind === 'operator' ? row : { ...row, by: nameless(row.by) })),
    );
    expect(before.map(({ action, by }) => [action, by.id])).toEqual([
      ...['opr_olaf', 'tok_1', 'usr_anna'].map((id) => ['budget.set', id]),
      ['credit.add', 'usr_anna'],
    ]);
    expect((await log(tenantId)).at(-1)!.after).toMatchObject({ ref: 'invoice-7', reason: 'paid', amountCents: 500 });
    expect(await log(bystander)).toEqual(others);
    expect(await billing.entries(tenantId)).toEqual(entries);
  });

  it('gets no name by a change that comes later, and a repeat finds one that was under way', async () => {
    const tenantId = await customer();
    billing.closedTenants.add(tenantId);
    await database.query('BEGIN');
    const underWay = `INSERT INTO billing.audit_log (id, at, author_kind, author_id, author_name, action, tenant_id)
      VALUES ($1, now(), 'person', 'usr_anna', 'anna@example.org', 'budget.set', $2)`;
    await database.query(underWay, [newId('aud'), tenantId]);
    await audit.eraseTenant({ tenantId });
    await database.query('COMMIT');
    expect(JSON.stringify(await log(tenantId))).toContain('anna@');
    await audit.eraseTenant({ tenantId });
    for (const author of [person, operator]) await change(tenantId, author, 80);
    expect((await log(tenantId)).slice(0, 2).map((row) => row.by)).toEqual([operator, nameless(person)]);
    expect(JSON.stringify(await log(tenantId))).not.toContain('anna@');
  });

  it('with many changes is erased in batches, each committed, and a repeat goes on with the rest', async () => {
    const [tenantId, bystander] = [await customer(), await customer()];
    const rows = Array.from({ length: 40 }, () => newId('aud'));
    await database.query(
      `INSERT INTO billing.audit_log (id, at, author_kind, author_id, author_name, action, tenant_id)
       SELECT id, now(), 'person', 'usr_anna', 'anna@example.org', 'budget.set', $2 FROM unnest($1::text[]) AS id`,
      [rows, tenantId],
    );
    const others = await log(bystander);
    const named = async () => (await log(tenantId)).filter(({ by }) => by.kind === 'person' && by.name !== null).length;
    const before = await named();
    const oneBatch = () => eraseChanges(billing.dataSource, tenantId, { batchRows: 10, tryMs: 0 });
    await expect(oneBatch()).rejects.toThrow(UnavailableError);
    const [first] = [await named()];
    expect(before - first).toBeGreaterThanOrEqual(9);
    // A change that comes between two batches has no names.
    await change(tenantId, person, 90);
    expect(await named()).toBe(first);
    await expect(oneBatch()).rejects.toThrow(UnavailableError);
    expect(first - (await named())).toBe(10);
    await eraseChanges(billing.dataSource, tenantId, { batchRows: 10 });
    expect(await named()).toBe(0);
    const [transactions] = await database.query<{ count: number }>(
      'SELECT count(DISTINCT xmin::text)::int AS count FROM billing.audit_log WHERE id = ANY ($1)',
      [rows],
    );
    expect(transactions!.count).toBeGreaterThanOrEqual(4);
    expect(await log(bystander)).toEqual(others);
  });

  it('is one that auth has closed', async () => {
    const tenantId = await customer();
    const before = await log(tenantId);
    await expect(audit.eraseTenant({ tenantId })).rejects.toMatchObject({ code: 'tenant_not_closed' });
    billing.unknownTenants.add(tenantId);
    await expect(audit.eraseTenant({ tenantId })).rejects.toMatchObject({ code: 'not_found' });
    expect(await log(tenantId)).toEqual(before);
  });

  it('has a log that nobody changes in another way, not even the owner of the schema', async () => {
    const tenantId = await customer();
    const set = (fields: string) =>
      database.query(`UPDATE billing.audit_log SET ${fields} WHERE tenant_id = $1`, [tenantId]);
    const people = `author_name = NULL, address = NULL`;
    await expect(set(people)).rejects.toThrow(/append-only/);
    billing.closedTenants.add(tenantId);
    await audit.eraseTenant({ tenantId });
    for (const fields of [`${people}, action = 'x'`, `after = '{}'`, `author_id = 'x'`, people])
      await expect(set(fields)).rejects.toThrow(/append-only/);
    for (const sql of ['DELETE FROM billing.erased_tenant', 'UPDATE billing.erased_tenant SET erased_at = now()'])
      await expect(database.query(sql)).rejects.toThrow(/append-only/);
  });
});
