import { newId, type Charge } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { InvoiceCloser } from '../invoices/invoice-closer';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { entryOfRequest, requestsOfEntry } from './charged-requests';

const database = useTestDatabase();

describe('from ledger line to requests and back', () => {
  const billing = useBilling(database);
  const requests = (entryId: string, page: { tenantId?: string; limit?: number; after?: string } = {}) =>
    requestsOfEntry(billing.dataSource, { entryId, ...page });
  const entryOf = (requestId: string) => entryOfRequest(billing.dataSource, { requestId });

  it('an entry names exactly the requests that it debits, in pages, and their costs make its amount', async () => {
    const tenantId = await billing.tenant();
    const endedAt = '2026-10-10T00:00:00.000Z';
    const batches: Charge[][] = [];
    for (let n = 0; n < 3; n++) {
      batches.push(
        Array.from({ length: 7 }, (_, i) => charge(tenantId, BigInt(n * 7 + i + 1) * 3_333_333n, { endedAt })),
      );
      await billing.gatherer.gather(batches[n]!);
      await billing.poster.postDue();
    }
    const [, ...usage] = await billing.entries(tenantId);
    expect(usage).toHaveLength(3);
    for (const [n, { id }] of usage.entries()) {
      const paged: string[] = [];
      let after: string | undefined;
      for (;;) {
        const page = await requests(id, { limit: 3, ...(after === undefined ? {} : { after }) });
        expect(page.entry).toMatchObject({ id, tenantId, period: '2026-10' });
        paged.push(...page.requests.map((one) => one.id));
        if (page.nextCursor === null) break;
        after = page.nextCursor;
      }
      expect(paged).toEqual(batches[n]!.map((one) => one.id));
      const { entry, carriedInNanos, carriedOutNanos, requests: all } = await requests(id);
      const costs = all.reduce((sum, one) => sum + BigInt(one.costNanos), 0n);
      expect(costs + BigInt(carriedInNanos)).toBe(BigInt(-entry.amountCents) * CENT + BigInt(carriedOutNanos));
      expect(all[0]).toEqual({ id: paged[0], keyId: 'key_test', costNanos: batches[n]![0]!.costNanos, endedAt });
      for (const requestId of paged) {
        expect(await entryOf(requestId)).toMatchObject({ entry: { id }, carriedOn: false, invoice: null });
      }
    }
  });

  it('a request has no entry before it is posted, and a month carries less than a cent on', async () => {
    const tenantId = await billing.tenant();
    const [little, waiting] = [
      charge(tenantId, 5n, { endedAt: '2026-09-10T00:00:00Z' }),
      charge(tenantId, 6n, { endedAt: '2026-10-10T00:00:00Z' }),
    ];
    await billing.gatherer.gather([little, waiting]);
    expect(await entryOf(little.id)).toEqual({
      charge: {
        id: little.id,
        keyId: 'key_test',
        costNanos: '5',
        endedAt: '2026-09-10T00:00:00.000Z',
        tenantId,
        period: '2026-09',
      },
      carriedOn: false,
      entry: null,
      invoice: null,
      monthClosed: false,
    });
    const closer = new InvoiceCloser(billing.dataSource, {
      postingIntervalMs: 0,
      closeDelayMs: 0,
      now: () => new Date('2026-11-01T00:00:00Z'),
    });
    await closer.close({ period: '2026-09', tenantId });
    // Nothing was debited in it, so it never gets an invoice.
    expect(await entryOf(little.id)).toMatchObject({ carriedOn: true, entry: null, invoice: null, monthClosed: true });
    expect(await entryOf(waiting.id)).toMatchObject({ carriedOn: false, entry: null, monthClosed: false });
    const more = charge(tenantId, CENT, { endedAt: '2026-10-11T00:00:00Z' });
    await billing.gatherer.gather([more]);
    await closer.close({ period: '2026-10', tenantId });
    const books = await entryOf(waiting.id);
    expect(books).toMatchObject({
      entry: { type: 'usage', amountCents: -1 },
      invoice: { period: '2026-10', status: 'paid' },
      monthClosed: true,
    });
    expect(await requests(books.entry!.id)).toMatchObject({
      carriedInNanos: '5',
      requests: [{ id: waiting.id }, { id: more.id }],
      carriedOutNanos: '11',
    });
  });

  it('an entry that is not usage covers no requests', async () => {
    const [topUp] = await billing.entries(await billing.tenant());
    expect(await requests(topUp!.id)).toMatchObject({
      entry: { type: 'topup', balanceAfterCents: topUp!.amount },
      requests: [],
      nextCursor: null,
    });
  });

  it('refuses an unknown entry, an unknown request, and a page after a request of another entry', async () => {
    for (const id of [newId('ent'), 'x', '\0', 5 as unknown as string]) {
      await expect(requests(id)).rejects.toMatchObject({ code: 'not_found' });
      await expect(entryOf(id)).rejects.toMatchObject({ code: 'not_found' });
    }
    const tenantId = await billing.tenant();
    const [one, other] = [charge(tenantId, CENT), charge(await billing.tenant(), CENT)];
    await billing.gatherer.gather([one, other]);
    await billing.poster.postDue();
    const { entry } = await entryOf(one.id);
    for (const after of [other.id, newId('req'), '\0'])
      await expect(requests(entry!.id, { after })).rejects.toMatchObject({ code: 'invalid_parameter' });
    await expect(requests(entry!.id, { tenantId })).resolves.toMatchObject({ entry: { id: entry!.id, tenantId } });
    // An entry of another tenant does not exist, whatever else is asked for.
    for (const after of [one.id, other.id])
      await expect(requests(entry!.id, { tenantId: await billing.tenant(), after })).rejects.toMatchObject({
        code: 'not_found',
        message: 'No such ledger entry.',
      });
    for (const limit of [0, 201, 1.5])
      await expect(requests(entry!.id, { limit })).rejects.toMatchObject({ code: 'invalid_parameter' });
  });
});
