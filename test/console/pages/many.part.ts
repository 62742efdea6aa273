import { eventually } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { openPage } from '../browser/looks';
import type { OnPage } from '../running/deployed';
import { shortRequest } from '../books/short-request.fixture';

const ARRIVES_WITHIN_MS = 120_000;
/** One more than a page of a list has. */
const MANY = 51;

/** A tenant with more keys and tokens than a page of a list has, and a request of its first key. */
export function manyTests(deployed: () => OnPage): void {
  describe('many keys and tokens', () => {
    let at: { base: string; tenantId: string };
    let requestId: string;
    beforeAll(async () => {
      const { console_, page, call } = deployed();
      await page.setViewportSize({ width: 1280, height: 800 });
      const { id } = (await call('operator/tenants', { name: 'Many' })) as { id: string };
      at = { base: console_.base, tenantId: id };
      const booking = { kind: 'topup', amountCents: 1_000, reason: 'for one request', ref: 'many-1' };
      await call(`operator/tenants/${id}/credit`, booking);
      const { key } = (await call(`tenants/${id}/keys`, { name: 'key-0' })) as { key: string };
      await call(`tenants/${id}/tokens`, { name: 'token-0', scopes: ['keys:read'] });
      for (let n = 1; n < MANY; n++) {
        await call(`tenants/${id}/keys`, { name: `key-${n}` });
        await call(`tenants/${id}/tokens`, { name: `token-${n}`, scopes: ['keys:read'] });
      }
      requestId = await shortRequest(console_, key);
      await eventually(
        async () => {
          const { data } = (await call(`tenants/${id}/requests`)) as { data: { id: string }[] };
          expect(data.map((row) => row.id)).toEqual([requestId]);
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );
    });

    const listed = async (url: RegExp) => {
      const { page } = deployed();
      await page.waitForURL(url);
      await page.getByRole('button', { name: `Show the books of ${requestId}` }).waitFor();
    };

    it.each([
      ['keys', 'Keys', 'More keys', 'key-0'],
      ['settings/tokens', 'Management tokens', 'Older tokens', 'token-0'],
    ] as const)('%s behind the first page are shown and revoked', async (path, title, more, name) => {
      const { page } = deployed();
      await openPage(page, at, [path, title]);
      const row = page.getByRole('row', { name: new RegExp(`^${name} `) });
      await page.getByRole('row', { name: new RegExp(`^${name.replace('0', String(MANY - 1))} `) }).waitFor();
      expect(await row.count()).toBe(0);
      await page.getByRole('button', { name: more }).click();
      await row.waitFor();
      expect(await page.getByRole('button', { name: more }).count()).toBe(0);
      await row.getByRole('button', { name: `Revoke ${name}` }).click();
      await page.getByLabel(`Type ${name} to confirm`).fill(name);
      await page.getByRole('button', { name: 'Revoke', exact: true }).click();
      await row.getByText('revoked').waitFor();
    });

    it('a key behind the first page has its name in usage and requests, and filter and budget find it', async () => {
      const { page } = deployed();
      await openPage(page, at, ['usage?by=key', 'Usage']);
      await page.getByRole('row', { name: / key-0 1 / }).waitFor();
      await page.locator('input[aria-label="Key"]').click();
      await page.keyboard.type('key-0');
      await page.getByRole('option', { name: /^key-0 …/ }).click();
      await page.waitForURL(/keyId=key_/);
      await openPage(page, at, ['requests', 'Requests']);
      await page.getByRole('row', { name: / sim-small key-0 / }).waitFor();
      await openPage(page, at, ['settings/budgets', 'Budgets']);
      await page.getByLabel('Give another key a budget').first().click();
      await page.keyboard.type('key-1');
      await page.getByRole('option', { name: /^key-1 …/ }).click();
      await page.getByRole('dialog', { name: 'Budget of key-1' }).waitFor();
    });

    it('the file of the audit log has every change that the filters match, not only those on the page', async () => {
      const { page } = deployed();
      await openPage(page, at, ['settings/audit', 'Audit']);
      await page.getByLabel('Change', { exact: true }).first().click();
      await page.getByRole('option', { name: 'token.create' }).click();
      await page.waitForURL(/action=token\.create/);
      const rows = page.getByRole('region', { name: 'Audit' }).getByRole('row');
      await page.getByRole('button', { name: 'Older changes' }).waitFor();
      expect(await rows.count()).toBeLessThanOrEqual(MANY);
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Download CSV' }).click();
      const file = readFileSync(await (await download).path(), 'utf8');
      const [head, ...lines] = file.trim().split('\r\n');
      expect(head).toContain('authorName');
      expect(lines).toHaveLength(MANY);
      expect(lines.every((line) => line.includes(',token.create,'))).toBe(true);
      // Before this month nothing was changed here.
      const [first, last] = [page.getByLabel('First day (UTC)'), page.getByLabel('Last day (UTC)')];
      await first.fill('2026-01-01');
      await last.fill('2026-01-31');
      await page.getByRole('button', { name: 'Show days' }).click();
      await page.getByText('No change matches these filters.').waitFor();
      expect(await page.getByRole('button', { name: 'Download CSV' }).isDisabled()).toBe(true);
    });

    it.each([
      ['overview', 'Overview'],
      ['usage', 'Usage'],
    ] as const)('a click on a bar of %s leads to its requests', async (path, title) => {
      const { page } = deployed();
      await openPage(page, at, [path, title]);
      await page.locator('rect[data-bar]').first().click();
      await listed(/\/requests\?.*from=.*model=sim-small/);
    });

    it('each cell of the usage leads to its requests, and the keyboard gets there', async () => {
      const { page } = deployed();
      const row = page.getByRole('region', { name: 'Usage' }).getByRole('row', { name: / sim-small 1 / });
      await openPage(page, at, ['usage', 'Usage']);
      for (const cell of await row.getByRole('cell').all()) {
        await cell.scrollIntoViewIfNeeded();
        const box = (await cell.boundingBox())!;
        await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
        await listed(/\/requests\?.*from=.*model=sim-small/);
        await page.goBack();
        await row.waitFor();
      }
      // Another tab, and the page stays.
      const other = page.context().waitForEvent('page');
      await row.getByRole('link').click({ modifiers: ['Control'] });
      const tab = await other;
      await tab.getByRole('button', { name: `Show the books of ${requestId}` }).waitFor();
      await tab.close();
      expect(new URL(page.url()).pathname).toMatch(/\/usage$/);
      // The local time is shown on hover: on what is under the pointer, which is the link.
      await row.scrollIntoViewIfNeeded();
      const { x, y, height } = (await row.locator('.figures').first().boundingBox())!;
      const cell = `document.elementFromPoint(${x + 2}, ${y + height / 2})`;
      const hovered = await page.evaluate(`${cell}.closest('[title]').getAttribute('title')`);
      expect(hovered).toMatch(/\d{4}.*\d{2}:\d{2}:\d{2}/);
      await row.getByRole('link').focus();
      await page.keyboard.press('Enter');
      await listed(/\/requests\?.*from=.*model=sim-small/);
    });
  });
}
