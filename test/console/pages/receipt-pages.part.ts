import { eventually, type TestDatabase } from '@tollgate/testing';
import type { Page } from 'playwright-core';
import { operator as operatorApi } from '../../e2e/deployment';
import { chargeFor, configurationOf } from '../books/invoice.fixture';
import type { LookAt } from '../browser/looking';
import { openPage } from '../browser/looks';
import type { RunningConsole } from '../running/running-console';

const ARRIVES_WITHIN_MS = 60_000;

/** A ledger entry on the screen and on paper. */
export function receiptPageTests(
  deployed: () => {
    console_: RunningConsole;
    page: Page;
    database: TestDatabase;
    lookAt: LookAt;
  },
): void {
  it('each ledger entry has a receipt that adds up, and prints without the frame around it', async () => {
    const { console_, page, database, lookAt } = deployed();
    const api = operatorApi(console_);
    const { id: tenantId } = (await api.post<{ data: { id: string } }>('/_operator/v1/tenants', { name: 'Receipts' }))
      .body.data;
    const at = { base: console_.base, tenantId };
    const topUp = { amountCents: 1_000, source: 'manual', ref: 'receipt-1' };
    expect((await api.post(`/_operator/v1/tenants/${tenantId}/credit`, topUp)).status).toBe(201);
    // 12.00015 cents, and then 12.60015: less than a cent is carried from one debit to the next.
    for (const [completionTokens, debitedCents] of [
      [200_000, 12],
      [210_000, 24],
    ] as const) {
      const used = { endedAt: new Date().toISOString(), completionTokens };
      await chargeFor(database, tenantId, await configurationOf(page, console_), used);
      await eventually(
        async () => {
          const sql = 'SELECT sum(debited_cents)::int AS cents FROM billing.tenant_month WHERE tenant_id = $1';
          expect(await database.query(sql, [tenantId])).toEqual([{ cents: debitedCents }]);
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );
    }
    const open = async (row: RegExp) => {
      await openPage(page, at, ['credit', 'Credit']);
      await page
        .getByRole('row', { name: row })
        .first()
        .getByRole('link', { name: /^Receipt ent_/ })
        .click();
      await page.getByRole('heading', { name: 'Receipt', level: 1 }).waitFor();
    };
    const shows = async (rows: readonly (readonly [string, string])[]) => {
      for (const [label, value] of rows)
        await page.getByRole('row', { name: `${label} ${value}`, exact: true }).waitFor();
    };
    await page.setViewportSize({ width: 1280, height: 800 });
    await open(/ topup 10\.00 USD /);
    await shows([
      ['Tenant', `Receipts, ${tenantId}`],
      ['Type', 'Credit added'],
      ['Source', 'manual'],
      ['Reference', 'receipt-1'],
      ['Amount', '10.00 USD'],
      ['Balance after', '10.00 USD'],
    ]);
    expect(await page.getByRole('table', { name: 'Sum' }).count()).toBe(0);

    await open(/ usage −0\.12 USD 9\.76 USD /);
    await shows([
      ['Type', 'Usage'],
      ['Amount', '−0.12 USD'],
      ['Balance after', '9.76 USD'],
      ['All requests', '0.1260015 USD'],
      ['Carried in, less than a cent', '0.0000015 USD'],
      ['Carried on to the next debit', '−0.006003 USD'],
      ['Paid from credit', '0.12 USD'],
    ]);
    const path = new URL(page.url()).pathname;
    const requests = page.getByRole('region', { name: 'Requests' }).getByRole('row');
    expect(await requests.nth(1).getByRole('cell').last().textContent()).toBe('0.1260015 USD');
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('navigation').first().isVisible()).toBe(false);
    expect(await page.getByRole('button', { name: 'Print or save as PDF' }).isVisible()).toBe(false);
    expect((await page.pdf()).subarray(0, 5).toString()).toBe('%PDF-');
    await page.emulateMedia({ media: 'screen' });
    await requests.nth(1).getByRole('link').click();
    const sheet = page.getByRole('dialog', { name: 'Request' });
    await sheet.getByText('Ledger entry').waitFor();
    await sheet.getByRole('button', { name: 'Copy Entry' }).waitFor();
    await sheet.getByRole('link', { name: /^Receipt ent_/ }).click();
    await page.getByRole('heading', { name: 'Receipt', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe(path);
    await lookAt(at, [path.slice(`/console/t/${tenantId}/`.length), 'Receipt'], { name: 'receipt' });
  });
}
