import { eventually } from '@tollgate/testing';
import type { RequestBooks, RequestList } from '../../../apps/console/src/api/answers';
import type { OnPage } from '../running/deployed';
import { longStream } from '../books/long-stream.fixture';
import { openPage } from '../browser/looks';
import { shortRequest } from '../books/short-request.fixture';
import { nanosOf } from '../browser/shown-amounts';

const ARRIVES_WITHIN_MS = 120_000;

/** A request that needed more than was held for it at first, in its side sheet, and requests that are looked up. */
export function requestSheetTests(deployed: () => OnPage): void {
  it('a long stream has its extensions and its charge on its sheet, and the id of the charge is copied', async () => {
    const { console_, page, call } = deployed();
    const { id: tenantId } = (await call('operator/tenants', { name: 'Extended' })) as { id: string };
    const booking = { kind: 'topup', amountCents: 1_000, reason: 'to stream', ref: 'extended-1' };
    await call(`operator/tenants/${tenantId}/credit`, booking);
    const { key } = (await call(`tenants/${tenantId}/keys`, { name: 'extended' })) as { key: string };
    const requestId = await longStream(console_, key);
    let request: RequestBooks;
    await eventually(
      async () => {
        request = (await call(`tenants/${tenantId}/requests/${requestId}`)) as RequestBooks;
        expect(request.books?.charge.id).toBe(requestId);
      },
      { timeoutMs: ARRIVES_WITHIN_MS },
    );
    const { life, books } = request!;
    expect(life!.extensions).toBeGreaterThan(0);

    await page.setViewportSize({ width: 1280, height: 800 });
    await openPage(page, { base: console_.base, tenantId }, [`requests?request=${requestId}`, 'Requests']);
    const sheet = page.getByRole('dialog', { name: 'Request' });
    const step = (title: string) => sheet.locator('.mantine-Timeline-item').filter({ hasText: title });
    const amount = async (title: string) => nanosOf((await step(title).locator('.figures').last().textContent())!);
    const extended = life!.extensions === 1 ? 'Extended once' : `Extended ${life!.extensions} times`;
    await step(extended).waitFor();
    expect(await amount('Admitted, credit held')).toBe(BigInt(life!.heldNanos));
    expect(await amount(extended)).toBe(BigInt(life!.endNanos));
    expect(await amount('Charged')).toBe(BigInt(books!.charge.costNanos));
    await step('Charged').getByText(`billed in ${books!.charge.period}`).waitFor();

    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: console_.base });
    await step('Charged').getByRole('button', { name: 'Copy Charge' }).click();
    await step('Charged').getByText('Copied', { exact: true }).waitFor();
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(books!.charge.id);
    await page.context().clearPermissions();

    // A request that cost more than what was held for it.
    const path = `**/tenants/${tenantId}/requests/${requestId}`;
    await page.route(path, async (route) => {
      const answer = await route.fetch();
      const capped = (await answer.json()) as RequestBooks;
      capped.event.overrunNanos = '700';
      await route.fulfill({ response: answer, json: capped });
    });
    await page.reload();
    await sheet.getByText('− 0.0000007 beyond what was held, not charged').waitFor();
    await page.unroute(path);
  });

  it("requests are found by their callers' id, which stays in the address and is removed again", async () => {
    const { console_, page, call } = deployed();
    const { id: tenantId } = (await call('operator/tenants', { name: 'Named' })) as { id: string };
    await call(`operator/tenants/${tenantId}/credit`, {
      kind: 'topup',
      amountCents: 100,
      reason: 'to name',
      ref: 'named-1',
    });
    const { key } = (await call(`tenants/${tenantId}/keys`, { name: 'named' })) as { key: string };
    const [named, repeated, other] = [
      await shortRequest(console_, key, '1e5'),
      await shortRequest(console_, key, '1e5'),
      await shortRequest(console_, key, 'order-18'),
    ];
    await eventually(
      async () => expect(((await call(`tenants/${tenantId}/requests`)) as RequestList).data).toHaveLength(3),
      { timeoutMs: ARRIVES_WITHIN_MS },
    );
    const row = (id: string) => page.getByRole('button', { name: `Show the books of ${id}` });
    await openPage(page, { base: console_.base, tenantId }, ['requests', 'Requests']);
    await row(other).waitFor();
    // A text that is also a number.
    await page.getByLabel('Request id').fill(' 1e5 ');
    await page.keyboard.press('Enter');
    await row(other).waitFor({ state: 'detached' });
    for (const id of [named, repeated]) await row(id).waitFor();
    await page.reload();
    for (const id of [named, repeated]) await row(id).waitFor();
    expect(await row(other).count()).toBe(0);
    await page.getByRole('button', { name: 'All request ids' }).click();
    await row(other).waitFor();
    await page.getByLabel('Request id').fill('order-19');
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByText('No request matches these filters.').waitFor();
  });
}
