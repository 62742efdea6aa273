import { costNanos, newId } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { stampPrice } from '@tollgate/runtime';
import { eventually, type TestDatabase } from '@tollgate/testing';
import type { BillingSummary, TenantRow } from '../../../apps/console/src/api/answers';
import { configurationOf } from '../books/invoice.fixture';
import type { OnPage } from '../running/deployed';
import { openPage } from '../browser/looks';

const ARRIVES_WITHIN_MS = 60_000;
/** One more than two pages of a list have. */
const MANY = 101;
// What follows runs in the page, so it is text. Instead of printing, it keeps what is on the page.
const KEEP_PRINTED = `
  globalThis.printed = [];
  globalThis.print = () => globalThis.printed.push(document.querySelector('main').innerText)`;
const WHEN_PRINTED = `
  new Promise((resolve) => {
    globalThis.print = () => resolve(document.querySelector('main').innerText);
  })`;

/** Lists of more rows than a page has, on paper. */
export function printingTests(deployed: () => OnPage & { database: TestDatabase }): void {
  let at: { base: string; tenantId: string };
  beforeAll(async () => {
    const { console_, call } = deployed();
    const { id: tenantId } = (await call('operator/tenants', { name: 'Printed' })) as TenantRow;
    at = { base: console_.base, tenantId };
    for (let n = 1; n <= MANY; n++) {
      const booking = { kind: 'topup', amountCents: 100 + n, reason: 'for paper', ref: `print-${n}` };
      await call(`operator/tenants/${tenantId}/credit`, booking);
    }
  });

  /** Charges the tenant for many requests at once, which one entry debits. */
  async function chargeMany(): Promise<void> {
    const { console_, page, database } = deployed();
    const { models } = await configurationOf(page, console_);
    const { id: model, price: given } = models.find(({ id }) => id === 'sim-small')!;
    const price = stampPrice({ ...given, cachedInput: given.cachedInput ?? given.input }, 'chat');
    const tokens = { promptTokens: 10, cachedTokens: 0, completionTokens: 20_000 };
    const endedAt = new Date().toISOString();
    const keyId = newId('key');
    const messages = new PostgresMessages({ url: database.url, applicationName: 'console-test' });
    try {
      await messages.start();
      const one = { tenantId: at.tenantId, keyId, model, kind: 'chat', stream: false } as const;
      const times = { startedAt: endedAt, endedAt, outcome: 'complete', estimated: false } as const;
      const money = { price, costNanos: String(costNanos(tokens, price)), overrunNanos: '0' };
      const events = Array.from({ length: MANY }, () => ({ id: newId('req'), ...one, ...tokens, ...times, ...money }));
      await messages.publish('usage-events', events);
    } finally {
      await messages.close();
    }
  }

  it('what has not loaded is not printed', async () => {
    const { page, call } = deployed();
    const { entries } = (await call(`tenants/${at.tenantId}/credit`)) as BillingSummary;
    const path = `**/api/tenants/${at.tenantId}/credit/*`;
    await page.route(path, (route) => route.abort());
    await openPage(page, at, [`credit/${entries[0]!.id}`, 'Receipt']);
    await page.getByText('This did not work').waitFor();
    const button = page.getByRole('button', { name: 'Print or save as PDF' });
    expect(await button.count()).toBe(0);
    await page.unroute(path);
    await page.getByRole('button', { name: 'Try again' }).click();
    await button.waitFor();
    expect(await page.getByText('This did not work').count()).toBe(0);
    // There is no such invoice.
    await openPage(page, at, ['invoices/999999', 'Invoice 999999']);
    await page.getByText('This did not work').waitFor();
    expect(await button.count()).toBe(0);
  });

  async function print(): Promise<string> {
    const { page } = deployed();
    const text = page.evaluate<string>(WHEN_PRINTED);
    await page.getByRole('button', { name: 'Print or save as PDF' }).click();
    return text;
  }

  it('the ledger is printed with all its entries, and says on paper when some are not loaded', async () => {
    const { page } = deployed();
    await openPage(page, at, ['credit', 'Credit']);
    const incomplete = page.getByText('The newest 50 entries are listed here. The balance is that of all.');
    await incomplete.waitFor();
    await page.emulateMedia({ media: 'print' });
    expect(await incomplete.isVisible()).toBe(true);
    expect(await page.getByRole('button', { name: 'Older entries' }).isVisible()).toBe(false);
    await page.emulateMedia({ media: 'screen' });
    const text = await print();
    for (let n = 1; n <= MANY; n++) expect(text).toMatch(new RegExp(`\\bprint-${n}\\b`));
    expect(text).not.toContain('are listed here');
  });

  it('a ledger whose older entries do not load is not printed', async () => {
    const { page } = deployed();
    const older = `**/tenants/${at.tenantId}/credit?after=*`;
    await openPage(page, at, ['credit', 'Credit']);
    await page.evaluate(KEEP_PRINTED);
    await page.route(older, (route) => route.fulfill({ status: 404, json: {} }));
    try {
      await page.getByRole('button', { name: 'Print or save as PDF' }).click();
      await page.getByRole('alert').getByText('The console answered 404.', { exact: false }).waitFor();
      expect(await page.evaluate<string[]>('globalThis.printed')).toEqual([]);
    } finally {
      await page.unroute(older);
    }
    const text = await print();
    expect(text).toMatch(/\bprint-1\b/);
  });

  it('a receipt is printed with all its requests, which its sum counts', async () => {
    const { page, call } = deployed();
    await chargeMany();
    const entry = await eventually(
      async () => {
        const { entries } = (await call(`tenants/${at.tenantId}/credit`)) as BillingSummary;
        const usage = entries.find(({ type }) => type === 'usage');
        expect(usage).toBeDefined();
        return usage!;
      },
      { timeoutMs: ARRIVES_WITHIN_MS },
    );
    await openPage(page, at, [`credit/${entry.id}`, 'Receipt']);
    await page.getByText('The first 50 requests are listed here. The sum is that of all.').waitFor();
    const text = await print();
    expect(new Set(text.match(/\breq_\w+/g)).size).toBe(MANY);
    expect(text).not.toContain('are listed here');
  });
}
