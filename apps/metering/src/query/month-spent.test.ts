import { askForCredit } from '@tollgate/admission';
import { newId, type UsageEvent } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { UsageDays } from '../record/usage-days';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import fs from 'node:fs';
import { MonthSpent } from './month-spent';

const database = useMeteringDatabase();
const MONTH = '2026-10';
const spent = (maxKeysPerPage?: number) => new MonthSpent(database.dataSource, maxKeysPerPage);

/** Records events of one tenant, each with its key and the time of its end. */
async function record(events: Pick<UsageEvent, 'tenantId' | 'keyId' | 'endedAt'>[]): Promise<void> {
  await new UsageConsumer(database.dataSource, ANY_PRICE).consume(events.map((event) => usageEvent(event)));
}
const cost = BigInt(usageEvent().costNanos);

describe('the spending of a month', () => {
  it('counts the requests of this tenant that ended in it, per key', async () => {
    const [tenantId, other] = [newId('ten'), newId('ten')];
    const [first, second] = [newId('key'), newId('key')].sort() as [string, string];
    await record([
      { tenantId, keyId: first, endedAt: '2026-10-01T00:00:00.000Z' },
      { tenantId, keyId: first, endedAt: '2026-10-31T23:59:59.999Z' },
      { tenantId, keyId: second, endedAt: '2026-10-15T12:00:00.000Z' },
      { tenantId, keyId: second, endedAt: '2026-09-30T23:59:59.999Z' },
      { tenantId, keyId: second, endedAt: '2026-11-01T00:00:00.000Z' },
      { tenantId: other, keyId: newId('key'), endedAt: '2026-10-15T12:00:00.000Z' },
    ]);
    expect(await spent().page({ tenantId, month: MONTH })).toEqual({
      tenantNanos: String(3n * cost),
      keys: [
        { keyId: first, nanos: String(2n * cost) },
        { keyId: second, nanos: String(cost) },
      ],
      nextCursor: null,
    });
    expect(await spent().page({ tenantId: newId('ten'), month: MONTH })).toEqual({
      tenantNanos: '0',
      keys: [],
      nextCursor: null,
    });
  });

  it.each(['2026-13', '2026-1', '2026-10-01', '', undefined])('refuses %p as a month', async (month) => {
    await expect(spent().page({ tenantId: newId('ten'), month: month as string })).rejects.toMatchObject({
      code: 'invalid_parameter',
    });
  });

  it('reaches the admission store page by page, and near the end of a month covers both months', async () => {
    const tenantId = newId('ten');
    const keys = Array.from({ length: 7 }, () => newId('key')).sort();
    await record([
      ...keys.map((keyId) => ({ tenantId, keyId, endedAt: '2026-10-20T00:00:00.000Z' })),
      { tenantId, keyId: keys[0]!, endedAt: '2026-11-01T00:00:30.000Z' },
    ]);
    const messages = new PostgresMessages({ url: database.url, applicationName: 'test-spent' });
    const update = { version: '9', balanceNanos: '-5', releases: [], suspended: true };
    messages.handle('billing.credit.news', async (request) => ({ ...request, ...update }));
    messages.handle('metering.spent', (request) => spent(2).page(request));
    await messages.start();
    try {
      const ask = askForCredit(messages, () => Date.parse('2026-11-01T00:01:00.000Z'));
      expect(await ask(tenantId)).toEqual({
        update: { tenantId, version: 9n, balanceNanos: -5n, releases: [], budgets: [], suspended: true },
        spent: [
          { month: '2026-10', tenantNanos: 7n * cost, keys: keys.map((keyId) => ({ keyId, nanos: cost })) },
          { month: '2026-11', tenantNanos: cost, keys: [{ keyId: keys[0]!, nanos: cost }] },
        ],
      });
      const later = askForCredit(messages, () => Date.parse('2026-11-01T00:06:00.000Z'));
      expect((await later(tenantId))!.spent.map(({ month }) => month)).toEqual(['2026-11']);
    } finally {
      await messages.close();
    }
  });

  it('logs the tenant and the number of restored keys if there are more than are restored', async () => {
    const tenantId = newId('ten');
    const keys = Array.from({ length: 11 }, () => newId('key')).sort();
    await record(keys.map((keyId) => ({ tenantId, keyId, endedAt: '2026-10-20T00:00:00.000Z' })));
    const messages = new PostgresMessages({ url: database.url, applicationName: 'test-spent' });
    messages.handle('billing.credit.news', async (request) => {
      return { ...request, version: '1', balanceNanos: '5', releases: [], suspended: false };
    });
    let keysPerPage = 2;
    messages.handle('metering.spent', (request) => spent(keysPerPage).page(request));
    await messages.start();
    const lines: string[] = [];
    const stderr = jest.spyOn(fs, 'writeSync').mockImplementation((_: number, text: unknown) => {
      lines.push(String(text));
      return Buffer.byteLength(String(text));
    });
    try {
      const ask = askForCredit(messages, () => Date.parse('2026-10-20T00:01:00.000Z'));
      expect((await ask(tenantId))!.spent[0]!.keys).toHaveLength(11);
      expect(lines).toEqual([]);
      keysPerPage = 1;
      const [restored] = (await ask(tenantId))!.spent;
      expect([restored!.tenantNanos, restored!.keys.length]).toEqual([11n * cost, 10]);
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
        expect.objectContaining({ component: 'admission', tenantId, month: MONTH, keysRestored: 10 }),
      ]);
    } finally {
      stderr.mockRestore();
      await messages.close();
    }
  });

  it('is the sum of the events with nothing folded, with half the month folded, and with events late for it', async () => {
    const tenantId = newId('ten');
    const keys = Array.from({ length: 3 }, () => newId('key')).sort();
    // The last month before this one, because only the past is folded.
    const now = new Date();
    const firstMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1);
    const month = new Date(firstMs).toISOString().slice(0, 7);
    const hourMs = 3_600_000;
    const at = (n: number) => new Date(firstMs + (n * 5 + 1) * hourMs).toISOString();
    const recorded = new Map<string, bigint>();
    const recordNext = async (numbers: number[]) => {
      const events = numbers.map((n) => ({ tenantId, keyId: keys[n % keys.length]!, endedAt: at(n) }));
      await record(events);
      for (const { keyId } of events) recorded.set(keyId, (recorded.get(keyId) ?? 0n) + cost);
    };
    const expectSum = async () =>
      expect(await spent().page({ tenantId, month })).toEqual({
        tenantNanos: String([...recorded.values()].reduce((sum, nanos) => sum + nanos)),
        keys: keys.map((keyId) => ({ keyId, nanos: String(recorded.get(keyId)) })),
        nextCursor: null,
      });

    await recordNext(Array.from({ length: 120 }, (_, n) => n));
    await expectSum();
    const middleMs = firstMs + 15 * 24 * hourMs;
    await new UsageDays(database.dataSource).fold(middleMs + 3 * hourMs);
    const [folded] = await database.query<{ until: Date }>('SELECT until FROM metering.usage_folded');
    expect(folded!.until.getTime()).toBe(middleMs);
    await expectSum();
    await recordNext([0, 1, 20, 50, 90]);
    await expectSum();
    // The hours of folded days are not read.
    await database.query('DELETE FROM metering.usage_hour WHERE tenant_id = $1 AND hour < $2', [
      tenantId,
      folded!.until.toISOString(),
    ]);
    await expectSum();
  });
});
