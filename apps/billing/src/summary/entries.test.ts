import { RequestError, type EntriesQuery } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { listEntries } from './entries';

const database = useTestDatabase();

describe('the entries of a tenant', () => {
  const billing = useBilling(database);
  const list = (tenantId: string, query: Partial<EntriesQuery> = {}) =>
    listEntries(billing.dataSource, { tenantId, ...query });

  it('are newest first, each with the balance after it and its month', async () => {
    const tenantId = await billing.tenant(1_000);
    await billing.gatherer.gather([charge(tenantId, 20n * CENT, { endedAt: '2026-03-31T23:59:59.999Z' })]);
    await billing.poster.postDue();
    await billing.topUps.add({ tenantId, amountCents: 5, source: 'manual', ref: 'second' });
    const { data, nextCursor } = await list(tenantId);
    expect(data.map(({ type, amountCents, balanceAfterCents }) => [type, amountCents, balanceAfterCents])).toEqual([
      ['topup', 5, 985],
      ['usage', -20, 980],
      ['topup', 1_000, 1_000],
    ]);
    expect([data[1]!.period, nextCursor]).toEqual(['2026-03', null]);
  });

  it('have pages by entry id, each entry once, also when one is booked between them', async () => {
    const tenantId = await billing.tenant(1);
    for (let i = 0; i < 4; i++) await billing.topUps.add({ tenantId, amountCents: 1, source: 'manual', ref: `r${i}` });
    const before = (await billing.entries(tenantId)).map(({ id }) => id).reverse();
    const first = await list(tenantId, { limit: 2 });
    await billing.topUps.add({ tenantId, amountCents: 1, source: 'manual', ref: 'later' });
    const second = await list(tenantId, { limit: 3, after: first.nextCursor! });
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(before);
    expect(second.nextCursor).toBeNull();
  });

  it('are filtered by type and by the time of booking', async () => {
    const tenantId = await billing.tenant(100);
    await billing.gatherer.gather([charge(tenantId, 3n * CENT)]);
    await billing.poster.postDue();
    const types = async (query: Partial<EntriesQuery>) => (await list(tenantId, query)).data.map(({ type }) => type);
    expect(await types({ type: 'usage' })).toEqual(['usage']);
    expect(await types({ type: 'refund' })).toEqual([]);
    const { createdAt } = (await list(tenantId, { type: 'topup' })).data[0]!;
    expect(await types({ to: createdAt })).toEqual([]);
    expect(await types({ from: createdAt })).toEqual(['usage', 'topup']);
    expect(await types({ from: '2100-01-01' })).toEqual([]);
  });

  it('are those of this tenant alone, and other queries are refused', async () => {
    const tenantId = await billing.tenant(1);
    const [foreign] = await billing.entries(await billing.tenant(1));
    expect((await list(tenantId)).data).toHaveLength(1);
    for (const query of [
      { limit: 0 },
      { limit: 201 },
      { after: foreign!.id },
      { after: 'ent_unknown' },
      { type: 'gift' as 'topup' },
      { from: 'yesterday' },
      { to: '2026-13-01' },
    ]) {
      const refused = list(tenantId, query);
      await expect(refused).rejects.toThrow(RequestError);
      await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter' });
    }
  });
});
