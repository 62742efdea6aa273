import { eventually } from '@tollgate/testing';
import type { OnPage } from '../running/deployed';
import { openPage } from '../browser/looks';
import { shortRequest } from '../books/short-request.fixture';

const ARRIVES_WITHIN_MS = 60_000;

/** Pages that stay open while others work: what they show follows, and nothing under the keyboard changes. */
export function followingTests(deployed: () => OnPage): void {
  describe('while others work', () => {
    let tenantId: string;
    beforeAll(async () => {
      const { page, call } = deployed();
      await page.setViewportSize({ width: 1280, height: 800 });
      tenantId = ((await call('operator/tenants', { name: 'Followed' })) as { id: string }).id;
      await call(`tenants/${tenantId}/keys`, { name: 'older' });
    });

    it('Credit shows a new entry, and Usage says so while it cannot be renewed', async () => {
      const { console_, page, call } = deployed();
      await openPage(page, { base: console_.base, tenantId }, ['credit', 'Credit']);
      const booking = { kind: 'topup', amountCents: 1_234, reason: 'to follow', ref: 'followed-1' };
      await call(`operator/tenants/${tenantId}/credit`, booking);
      await page.getByText('The balance is 12.34').waitFor();
      await page.getByRole('row', { name: /followed-1/ }).waitFor();

      await openPage(page, { base: console_.base, tenantId }, ['usage', 'Usage']);
      const error = { code: 'unavailable', message: 'A service does not answer.', requestId: 'one' };
      await page.route(/\/usage\?/, (route) => route.fulfill({ status: 503, json: { error } }));
      await page.getByText('What is below may be out of date.').waitFor();
      await page.unroute(/\/usage\?/);
      await page.getByText('What is below may be out of date.').waitFor({ state: 'detached' });
    });

    it('Keys and Budgets show what is new, and focus and an open dialog stay with their row', async () => {
      const { console_, page, call } = deployed();
      await openPage(page, { base: console_.base, tenantId }, ['keys', 'Keys']);
      const revoke = page.getByRole('button', { name: 'Revoke older' });
      await revoke.focus();
      await call(`tenants/${tenantId}/keys`, { name: 'newer' });
      await page.getByRole('button', { name: 'Revoke newer' }).waitFor();
      expect(await page.evaluate<string>('document.activeElement.ariaLabel')).toBe('Revoke older');
      await page.keyboard.press('Enter');
      const confirmation = page.getByLabel('Type older to confirm');
      await confirmation.fill('old');
      await call(`tenants/${tenantId}/keys`, { name: 'newest' });
      await page.getByText('newest', { exact: true }).waitFor();
      expect(await confirmation.inputValue()).toBe('old');
      await page.keyboard.press('Escape');

      await openPage(page, { base: console_.base, tenantId }, ['settings/budgets', 'Budgets']);
      const budget = `${console_.base}/console/api/tenants/${tenantId}/budget`;
      const headers = { origin: console_.base };
      expect((await page.request.put(budget, { data: { budgetCents: 4_321 }, headers })).status()).toBe(200);
      await page.getByText('43.21').waitFor();
    });

    it('the first page of Requests shows a new one, and asks again for a sheet without a ledger entry', async () => {
      const { console_, page, call } = deployed();
      const { key } = (await call(`tenants/${tenantId}/keys`, { name: 'asking' })) as { key: string };
      await openPage(page, { base: console_.base, tenantId }, ['requests', 'Requests']);
      const ask = () => shortRequest(console_, key);
      // Admission hears of the credit a moment later.
      const id = await eventually(ask, { timeoutMs: ARRIVES_WITHIN_MS });
      const sheet = page.getByRole('dialog', { name: 'Request' });
      await page.getByRole('button', { name: `Show the books of ${id}` }).click();
      await sheet.getByText('Not posted yet').waitFor();
      await page.waitForRequest((request) => request.url().endsWith(`/requests/${id}`));
      const other = await ask();
      await page.getByLabel(`Show the books of ${other}`).waitFor();
      await sheet.getByText(id, { exact: true }).first().waitFor();
    });
  });
}
