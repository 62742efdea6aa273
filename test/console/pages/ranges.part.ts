import { eventually } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { shortRequest } from '../books/short-request.fixture';
import { openPage } from '../browser/looks';
import type { OnPage } from '../running/deployed';

const ARRIVES_WITHIN_MS = 120_000;
const DAY_MS = 86_400_000;
/** More than a chart has colours for, and more than an answer of 400 days names. */
const KEYS = 26;
/** 401 steps, each with the others too, of 10,000 points. */
const NAMED_IN_400_DAYS = 23;
const monthName = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** The days of Usage and Requests, and usage by more keys than a chart shows. */
export function rangeTests(deployed: () => OnPage): void {
  describe('any range', () => {
    let at: { base: string; tenantId: string };
    /** One of the keys that make the usage. */
    let keyId: string;
    const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
    /** When the usage was made, all on one day. */
    let madeMs: number;
    const fields = () => ({
      first: deployed().page.getByLabel('First day (UTC)'),
      last: deployed().page.getByLabel('Last day (UTC)'),
      show: deployed().page.getByRole('button', { name: 'Show days' }),
    });
    const rangeOfAddress = () => {
      const { searchParams } = new URL(deployed().page.url());
      return [searchParams.get('from'), searchParams.get('to')];
    };

    beforeAll(async () => {
      const { console_, page, call } = deployed();
      await page.setViewportSize({ width: 1280, height: 800 });
      // Made again if the day ended meanwhile.
      do {
        madeMs = Date.now();
        const { id } = (await call('operator/tenants', { name: 'Ranges' })) as { id: string };
        at = { base: console_.base, tenantId: id };
        const credit = { kind: 'topup', amountCents: 1_000, reason: 'ranges', ref: id };
        await call(`operator/tenants/${id}/credit`, credit);
        for (let n = 0; n < KEYS; n++) {
          const made = (await call(`tenants/${id}/keys`, { name: `key-${n}` })) as { id: string; key: string };
          keyId = made.id;
          await shortRequest(console_, made.key);
        }
      } while (dayOf(Date.now()) !== dayOf(madeMs));
      await eventually(
        async () => {
          const { data } = (await call(`tenants/${at.tenantId}/requests?limit=50`)) as { data: unknown[] };
          expect(data).toHaveLength(KEYS);
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );
    });

    it.each([
      ['usage', 'Usage', / sim-small /],
      ['requests', 'Requests', / sim-small key-0 /],
    ] as const)('%s shows a month, which is in the address', async (path, title, row) => {
      const { page } = deployed();
      await openPage(page, at, [path, title]);
      await page.locator('input[aria-label="Month"]').click();
      const made = new Date(madeMs);
      await page.getByRole('option', { name: monthName.format(made), exact: true }).click();
      await page.waitForURL(/from=/);
      const [year, month] = [made.getUTCFullYear(), made.getUTCMonth()];
      expect(rangeOfAddress()).toEqual([
        new Date(Date.UTC(year, month)).toISOString(),
        new Date(Date.UTC(year, month + 1)).toISOString(),
      ]);
      await page.getByRole('row', { name: row }).first().waitFor();
    });

    it('a page that is open over the turn of a month has the new month to choose', async () => {
      const { page } = deployed();
      await openPage(page, at, ['requests?from=2024-02-01T00:00:00.000Z&to=2024-02-03T00:00:00.000Z', 'Requests']);
      await page.getByText('No request matches these filters.').waitFor();
      const [now, month] = [new Date(), page.locator('input[aria-label="Month"]')];
      const next = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
      await page.evaluate((ms) => {
        Date.now = () => ms;
      }, next);
      await month.click();
      await page.getByRole('option', { name: monthName.format(next), exact: true }).waitFor();
    });

    it.each([
      ['usage', 'Usage', / sim-small /],
      ['requests', 'Requests', / sim-small key-0 /],
    ] as const)('%s shows days that the keyboard alone has chosen', async (path, title, row) => {
      const { page } = deployed();
      const [first, last, end] = [-99, 1, 2].map((days) => dayOf(madeMs + days * DAY_MS)) as [string, string, string];
      await openPage(page, at, [path, title]);
      await fields().first.focus();
      for (const [, year, month, day] of [first, last].map((text) => /(.*)-(.*)-(.*)/.exec(text)!)) {
        await page.keyboard.type(`${month}${day}${year}`);
        // From the year to the button of the calendar, and to the next field.
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
      }
      expect([await fields().first.inputValue(), await fields().last.inputValue()]).toEqual([first, last]);
      await page.keyboard.press('Enter');
      await page.waitForURL(/from=/);
      expect(rangeOfAddress()).toEqual([`${first}T00:00:00.000Z`, `${end}T00:00:00.000Z`]);
      await page.getByRole('row', { name: row }).first().waitFor();
    });

    it('days before the first request have none, and a range without end has all requests since', async () => {
      const { page } = deployed();
      await openPage(page, at, ['requests', 'Requests']);
      await fields().last.fill('2024-02-29');
      await fields().show.click();
      await page.getByText('No request matches these filters.').waitFor();
      expect(rangeOfAddress()).toEqual([null, '2024-03-01T00:00:00.000Z']);
      await fields().last.fill('');
      await fields().first.fill('2024-02-29');
      await fields().show.click();
      await page.getByRole('row', { name: / sim-small key-0 / }).waitFor();
      expect(rangeOfAddress()).toEqual(['2024-02-29T00:00:00.000Z', null]);
    });

    it('days that cannot be shown are refused with the reason, and so is such an address', async () => {
      const { page } = deployed();
      await openPage(page, at, ['usage', 'Usage']);
      for (const [first, last, reason] of [
        ['2026-02-02', '2026-02-01', 'The first day is after the last.'],
        ['2024-01-01', '2026-02-01', 'These are 763 days. Choose at most 400.'],
      ] as const) {
        await fields().first.fill(first);
        await fields().last.fill(last);
        await fields().show.click();
        await page.getByText(reason).waitFor();
        expect(rangeOfAddress()).toEqual([null, null]);
      }
      await openPage(page, at, ['usage?from=yesterday', 'Usage']);
      await page.getByRole('alert', { name: 'This did not work' }).waitFor();
    });

    it('by key, table and file have each key with its id, and the chart shows 8 and the others', async () => {
      const { page } = deployed();
      await openPage(page, at, ['usage?by=key', 'Usage']);
      await page.getByRole('row', { name: /^Total/ }).waitFor();
      const table = page.getByRole('region', { name: 'Usage' });
      expect(await table.getByRole('row', { name: / key-\d+ 1 / }).count()).toBe(KEYS);
      expect(await page.locator('rect[data-bar]').count()).toBe(9);
      const saved = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Download CSV' }).click();
      const [head, ...lines] = readFileSync(await (await saved).path(), 'utf8')
        .trim()
        .split('\r\n');
      expect(head).toMatch(/^at,keyId,name,requests,/);
      expect(lines).toHaveLength(KEYS);
      expect(lines.filter((line) => line.includes(`,${keyId},key-${KEYS - 1},1,`))).toHaveLength(1);
    });

    it('keys that do not fit into an answer are others, the page says so, and they lead to requests', async () => {
      const { page } = deployed();
      const toMs = (Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS;
      const [from, to] = [toMs - 400 * DAY_MS, toMs].map((ms) => new Date(ms).toISOString());
      await openPage(page, at, [`usage?by=key&from=${from}&to=${to}`, 'Usage']);
      await page.getByText(`Table and file have the ${NAMED_IN_400_DAYS} keys with the highest cost`).waitFor();
      const others = page.getByRole('row', { name: new RegExp(` others ${KEYS - NAMED_IN_400_DAYS} requests`) });
      await others.getByRole('link').click();
      await page.waitForURL(/\/requests\?.*from=/);
      await page
        .getByRole('row', { name: / sim-small key-/ })
        .first()
        .waitFor();
      expect(new URL(page.url()).searchParams.has('keyId')).toBe(false);
    });
  });
}
