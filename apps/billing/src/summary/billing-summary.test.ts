import { newId } from '@tollgate/contracts';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { periodOf } from '../ledger/core/period';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { billingSummary } from './billing-summary';

const database = useTestDatabase();

describe('the billing summary', () => {
  const billing = useBilling(database);
  const now = new Date();
  const summary = (tenantId: string, page: { limit?: number; after?: string } = {}) =>
    billingSummary(billing.dataSource, { tenantId, ...page }, now);

  it('returns balance, entries newest first, remainder, and an open invoice per month with debits', async () => {
    const tenantId = await billing.tenant(1_000);
    await billing.gatherer.gather([
      charge(tenantId, 3n * CENT + 7n, { endedAt: now.toISOString() }),
      charge(tenantId, 20n * CENT, { endedAt: '2026-03-31T23:59:59.999Z' }),
    ]);
    await billing.poster.postDue();
    const period = periodOf(now);
    expect(await summary(tenantId)).toEqual({
      balanceCents: 977,
      carriedNanos: '7',
      entries: [
        {
          id: expect.any(String),
          type: 'usage',
          amountCents: -3,
          source: 'metering',
          ref: `${period}:1-1`,
          createdAt: expect.any(String),
        },
        {
          id: expect.any(String),
          type: 'usage',
          amountCents: -20,
          source: 'metering',
          ref: '2026-03:1-1',
          createdAt: expect.any(String),
        },
        {
          id: expect.any(String),
          type: 'topup',
          amountCents: 1_000,
          source: 'manual',
          ref: 'first',
          createdAt: expect.any(String),
        },
      ],
      nextCursor: null,
      invoices: [
        { period, amountCents: 3, status: 'open', accountingNumber: null, createdAt: `${period}-01T00:00:00.000Z` },
        {
          period: '2026-03',
          amountCents: 20,
          status: 'open',
          accountingNumber: null,
          createdAt: '2026-03-01T00:00:00.000Z',
        },
      ],
    });
  });

  it('is zero, with the running month open, for a tenant without books', async () => {
    expect(await summary(newId('ten'))).toMatchObject({
      balanceCents: 0,
      carriedNanos: '0',
      entries: [],
      nextCursor: null,
      invoices: [{ amountCents: 0, status: 'open' }],
    });
  });

  it('has pages by entry id, each entry once', async () => {
    const tenantId = await billing.tenant(1);
    for (let i = 0; i < 6; i++) await billing.topUps.add({ tenantId, amountCents: 1, source: 'manual', ref: `r${i}` });
    const ids: string[] = [];
    let after: string | undefined;
    do {
      const page = await summary(tenantId, { limit: 3, ...(after ? { after } : {}) });
      expect(page.balanceCents).toBe(7);
      ids.push(...page.entries.map((entry) => entry.id));
      after = page.nextCursor ?? undefined;
    } while (after);
    expect(ids).toEqual((await billing.entries(tenantId)).map((entry) => entry.id).reverse());
    expect(await summary(tenantId, { limit: 7 })).toMatchObject({ nextCursor: null });
  });

  it('refuses a limit out of range, and a cursor that is not an entry of the tenant', async () => {
    const tenantId = await billing.tenant();
    const [foreign] = await billing.entries(await billing.tenant());
    for (const page of [
      { limit: 0 },
      { limit: 201 },
      { limit: 1.5 },
      { after: 'ent_unknown' },
      { after: foreign!.id },
    ]) {
      await expect(summary(tenantId, page)).rejects.toMatchObject({ code: 'invalid_parameter' });
    }
  });

  it('is one snapshot: while usage and top-ups are booked, the balance is the sum of the entries shown', async () => {
    const tenantId = await billing.tenant(10_000);
    let reads = 0;
    const writes = (async () => {
      for (let i = 0; i < 25; i++) {
        const before = reads;
        if (i % 6 === 5) await eventually(() => expect(reads).toBeGreaterThan(before));
        await billing.gatherer.gather([charge(tenantId, 3n * CENT + 1n)]);
        await Promise.all([
          billing.poster.postDue(),
          billing.topUps.add({ tenantId, amountCents: 2, source: 'manual', ref: `w${i}` }),
        ]);
      }
    })();
    writes.catch(() => {});
    for (let done = false; !done; reads++) {
      // eslint-disable-next-line no-restricted-syntax -- until the writes are through
      done = await Promise.race([writes.then(() => true), summary(tenantId, { limit: 200 }).then(checkSum)]);
    }
    checkSum(await summary(tenantId, { limit: 200 }));
    expect(reads).toBeGreaterThan(3);
  });
});

function checkSum({ balanceCents, entries, invoices }: Awaited<ReturnType<typeof billingSummary>>): boolean {
  expect(balanceCents).toBe(entries.reduce((sum, entry) => sum + entry.amountCents, 0));
  const debits = entries.filter((entry) => entry.type === 'usage').reduce((sum, entry) => sum - entry.amountCents, 0);
  expect(invoices.reduce((sum, invoice) => sum + invoice.amountCents, 0)).toBe(debits);
  return false;
}
