import { eventually } from '@tollgate/testing';
import type { OnPage } from '../running/deployed';
import { openPage } from '../browser/looks';
import { shortRequest } from '../books/short-request.fixture';

const ARRIVES_WITHIN_MS = 60_000;
const PHONE_PX = 375;

/** What a table is opened for stays on the screen of a phone, though its other columns do not fit. */
export function phoneTests(deployed: () => OnPage): void {
  it('on a phone, the books of a request and the receipt of an entry are in view without scrolling', async () => {
    const { console_, page, call } = deployed();
    const { id: tenantId } = (await call('operator/tenants', { name: 'Carried' })) as { id: string };
    const booking = { kind: 'topup', amountCents: 100, reason: 'to carry', ref: 'carried-1' };
    await call(`operator/tenants/${tenantId}/credit`, booking);
    const { key } = (await call(`tenants/${tenantId}/keys`, { name: 'carried' })) as { key: string };
    // Admission hears of the credit a moment later.
    await eventually(() => shortRequest(console_, key), { timeoutMs: ARRIVES_WITHIN_MS });
    await page.setViewportSize({ width: PHONE_PX, height: 800 });
    for (const [path, title, shown] of [
      ['requests', 'Requests', page.getByRole('button', { name: /^Show the books of / })],
      ['credit', 'Credit', page.getByRole('link', { name: /^Receipt / })],
    ] as const) {
      await openPage(page, { base: console_.base, tenantId }, [path, title]);
      await shown.first().waitFor();
      const { x, width } = (await shown.first().boundingBox())!;
      expect([path, x >= 0, x + width <= PHONE_PX]).toEqual([path, true, true]);
    }
    // Nothing lies over it.
    await page.getByRole('link', { name: /^Receipt / }).click();
    await page.getByRole('heading', { name: 'Receipt', level: 1 }).waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
  });
}
