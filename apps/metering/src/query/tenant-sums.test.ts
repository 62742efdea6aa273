import { newId } from '@tollgate/contracts';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.suite';
import { usageEvent } from '../sample-events.suite';
import { TenantSums } from './tenant-sums';

const database = useMeteringDatabase();

describe('sums by tenant', () => {
  it('come in pages, ascending, each tenant once, and equal the sums over the events', async () => {
    const tenants = Array.from({ length: 7 }, () => newId('ten'));
    const events = tenants.flatMap((tenantId, i) => Array.from({ length: i + 1 }, () => usageEvent({ tenantId })));
    const consumer = new UsageConsumer(database.dataSource);
    await consumer.consume(events.slice(0, 12));
    await consumer.consume(events.slice(8));
    const sums = new TenantSums(database.dataSource);
    const seen = [];
    for (let after: string | null = ''; after !== null;) {
      const page: Awaited<ReturnType<TenantSums['page']>> = await sums.page({ limit: 3, after });
      expect(page.data.length).toBeLessThanOrEqual(3);
      seen.push(...page.data);
      after = page.nextCursor;
    }
    const cost = Number(usageEvent().costNanos);
    expect(seen).toEqual(
      tenants.sort().map((tenantId, i) => ({ tenantId, events: i + 1, costNanos: String(cost * (i + 1)) })),
    );
    expect(await sums.page({})).toEqual({ data: seen, nextCursor: null });
    expect(await sums.page({ limit: 7 })).toEqual({ data: seen, nextCursor: null });
  });

  it.each([0, 201, 1.5])('refuse a page of %s', async (limit) => {
    await expect(new TenantSums(database.dataSource).page({ limit })).rejects.toMatchObject({
      code: 'invalid_parameter',
    });
  });
});
