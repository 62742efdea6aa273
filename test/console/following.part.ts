import { eventually } from '@tollgate/testing';
import type { OnPage } from './deployed';
import { openPage } from './looks';

const ARRIVES_WITHIN_MS = 60_000;

/** Pages that stay open while others work: what they show follows, and nothing under the keyboard changes. */
export function followingTests(deployed: () => OnPage): void {
  describe('an open page follows what happens elsewhere', () => {
    let tenantId: string;
    beforeAll(async () => {
      const { console_, page, call } = deployed();
      await page.setViewportSize({ width: 1280, height: 800 });
      await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
      tenantId = ((await call('operator/tenants', { name: 'Followed' })) as { id: string }).id;
      await call(`tenants/${tenantId}/keys`, { name: 'older' });
    });

    it('Credit, and Usage, which says so when it cannot', async () => {
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

    it('Keys and Budgets, while focus and an open dialog stay with their row', async () => {
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

    it('the first page of Requests, and the sheet of one whose ledger entry does not exist yet', async () => {
      const { console_, page, call } = deployed();
      const { key } = (await call(`tenants/${tenantId}/keys`, { name: 'asking' })) as { key: string };
      await openPage(page, { base: console_.base, tenantId }, ['requests', 'Requests']);
      const ask = async () => {
        const answer = await fetch(`${console_.inferenceUrl}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }] }),
        });
        expect(answer.status).toBe(200);
        await answer.text();
        return answer.headers.get('x-request-id')!;
      };
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
