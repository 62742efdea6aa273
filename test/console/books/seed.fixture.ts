import { costNanos, newId, type TokenCounts } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { stampPrice } from '@tollgate/runtime';
import { eventually, type TestDatabase } from '@tollgate/testing';
import type { Page } from 'playwright-core';
import type { Fleet } from '../../../apps/console/src/api/answers';
import { operator as operatorApi } from '../../e2e/deployment';
import { configurationOf } from './invoice.fixture';
import { backendOf } from '../browser/looks';
import { endMonth } from './month-end.fixture';
import type { RunningConsole } from '../running/running-console';
import { settledBooks } from './settled-books';

/** A few dozen requests fill each page for axe. Pictures show a month. */
const DAYS = process.env['TOLLGATE_SCREENSHOTS'] === undefined ? 4 : 29;
const DAY_MS = 86_400_000;
const ARRIVES_WITHIN_MS = 120_000;
/** Requests of a model a day, at most, and their tokens: the same in each run. */
const MODELS = [
  { name: 'sim-small', requests: 5, promptTokens: 40_000, completionTokens: 16_000 },
  { name: 'sim-large', requests: 3, promptTokens: 400, completionTokens: 150 },
  { name: 'sim-embed', requests: 4, promptTokens: 200_000, completionTokens: 0 },
] as const;
/** Those with use. */
const TENANTS = 2n;
const NANOS_PER_CENT = 10_000_000n;
const KEYS = ['chat-app', 'search', 'nightly-report'];

interface Seeded {
  console_: RunningConsole;
  page: Page;
  database: TestDatabase;
}

/**
 * Use of the demo tenant by three keys in the days before today, invoices of another one, and a report of reconcile, so
 * that the pages have something to show.
 */
export async function seedUsage({ console_, page, database }: Seeded): Promise<void> {
  const call = backendOf(page);
  const { tenantId } = console_.demo!;
  const booking = { kind: 'topup', amountCents: 5_000, reason: 'for the pictures', ref: 'pictures-1' };
  await call(`operator/tenants/${tenantId}/credit`, booking);
  const keyIds: string[] = [];
  for (const name of KEYS) keyIds.push(((await call(`tenants/${tenantId}/keys`, { name })) as { id: string }).id);
  const { models } = await configurationOf(page, console_);
  const messages = new PostgresMessages({ url: database.url, applicationName: 'console-test' });
  let sent = 0;
  try {
    await messages.start();
    for (let day = DAYS; day > 0; day--) {
      const events = MODELS.flatMap(({ name, requests, ...tokens }, m) => {
        const { kind, price: given } = models.find(({ id }) => id === name)!;
        const price = stampPrice({ ...given, cachedInput: given.cachedInput ?? given.input }, kind);
        // It rises and falls within a week.
        const today = 1 + ((day * (m + 3) + (day % 7)) % requests);
        return Array.from({ length: today }, (_, n) => {
          const used: TokenCounts = { ...tokens, cachedTokens: n % 2 === 0 ? 0 : tokens.promptTokens / 2 };
          const endedMs = Date.now() - day * DAY_MS + n * 600_000;
          const event = { id: newId('req'), tenantId, keyId: keyIds[(n + m + day) % KEYS.length]!, model: name, kind };
          const times = {
            startedAt: new Date(endedMs - 900 - n * 1_300).toISOString(),
            endedAt: new Date(endedMs).toISOString(),
          };
          const cost = { price, costNanos: String(costNanos(used, price)), overrunNanos: '0' };
          return {
            ...event,
            ...used,
            ...times,
            ...cost,
            stream: false,
            outcome: 'complete' as const,
            estimated: false,
          };
        });
      });
      sent += events.length;
      await messages.publish('usage-events', events);
    }
  } finally {
    await messages.close();
  }
  await eventually(
    async () => {
      const sql = 'SELECT count(*)::int AS rows FROM metering.usage_event WHERE tenant_id = $1';
      const [found] = await database.query<{ rows: number }>(sql, [tenantId]);
      expect(found!.rows).toBeGreaterThanOrEqual(sent);
    },
    { timeoutMs: ARRIVES_WITHIN_MS },
  );
  await seedInvoices({ console_, page, database });
  // Before the report, so that its runs do not fill the log: each tenant has less than a cent that is not posted.
  await eventually(
    async () => {
      const { settledNanos, postedCents } = (await call('operator/fleet')) as Fleet;
      const notPosted = BigInt(settledNanos) - BigInt(postedCents) * NANOS_PER_CENT;
      expect(notPosted).toBeLessThan(TENANTS * NANOS_PER_CENT);
    },
    { timeoutMs: ARRIVES_WITHIN_MS },
  );
  await eventually(() => settledBooks(console_), { timeoutMs: ARRIVES_WITHIN_MS });
}

/** Two months of a tenant that are over. */
async function seedInvoices({ console_, page, database }: Seeded): Promise<void> {
  const call = backendOf(page);
  const { id } = (await call('operator/tenants', { name: 'Acme' })) as { id: string };
  await call(`operator/tenants/${id}/credit`, { kind: 'topup', amountCents: 5_000, reason: 'prepaid', ref: 'acme-1' });
  await endMonth(database, id, await configurationOf(page, console_), async (period) => {
    const close = { period, tenantId: id };
    expect((await operatorApi(console_).post('/_operator/v1/invoices/close', close)).status).toBe(200);
  });
}
