import type { BillingSummary, TenantRow } from '../../../apps/console/src/api/answers';
import type { OnPageWithAxe } from '../running/deployed';
import { openPage } from '../browser/looks';

/** Credit that is booked while its answer is lost on the way to the browser. */
export function unansweredTests(deployed: () => OnPageWithAxe): void {
  let tenantId: string;
  beforeAll(async () => {
    ({ id: tenantId } = (await deployed().call('operator/tenants', { name: 'Lost' })) as TenantRow);
  });
  const amounts = async () => {
    const { entries } = (await deployed().call(`tenants/${tenantId}/credit`)) as BillingSummary;
    return entries.map(({ amountCents }) => amountCents);
  };
  const form = () => deployed().page.getByRole('dialog', { name: 'Credit of Lost' });
  const click = (name: string) => form().getByRole('button', { name, exact: true }).click();
  const open = () => deployed().page.getByRole('button', { name: 'Credit of Lost' }).click();
  const openTenants = () =>
    openPage(deployed().page, { base: deployed().console_.base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
  const close = async () => {
    await click('Close');
    await form().waitFor({ state: 'detached' });
  };
  /** Fills in the open form, and sends it after its preview. */
  const enter = async (amount: string, reason: string) => {
    await form().getByLabel('Amount (USD)').fill(amount);
    await form().getByLabel('Reason').fill(reason);
    await click('Preview');
    await click('Book it');
  };
  /** The backend books, and the browser gets no answer. */
  const loseAnswer = async (work: () => Promise<void>) => {
    const { page } = deployed();
    const path = `**/operator/tenants/${tenantId}/credit`;
    await page.route(path, async (route) => {
      await route.fetch();
      await route.abort();
    });
    try {
      await work();
      await form().getByText('It may be booked.').waitFor();
    } finally {
      await page.unroute(path);
    }
  };

  it('a lost answer is shown as such, with the new balance, and the next form repeats that booking once', async () => {
    const { page, violations } = deployed();
    await openTenants();
    await open();
    await loseAnswer(() => enter('25', 'paid'));
    expect(await form().getByText('This did not work').count()).toBe(0);
    expect(await violations()).toEqual([]);
    await close();
    await page.getByRole('row', { name: /^Lost 25\.00 USD / }).waitFor();
    // Not even a reload forgets it.
    await openTenants();
    await open();
    await form().getByText('It may be booked.').waitFor();
    expect(await form().getByLabel('Amount (USD)').inputValue()).toBe('25');
    expect(await violations()).toEqual([]);
    await click('Send it again');
    await form().getByText('It was booked before, and is booked once. The balance after it was 25.00 USD.').waitFor();
    await click('Done');
    expect(await amounts()).toEqual([2_500]);
    await open();
    expect(await form().getByText('It may be booked.').count()).toBe(0);
    await close();
  });

  it('another amount after a lost answer is not booked beside it until the person knows', async () => {
    const { page } = deployed();
    await open();
    await loseAnswer(() => enter('10', 'paid again'));
    await enter('11', 'paid again');
    await form().getByText('Nothing was booked now.', { exact: false }).waitFor();
    expect(await form().getByText('It may be booked.').count()).toBe(0);
    expect(await amounts()).toEqual([1_000, 2_500]);
    // A change removes the message. The next booking has a reference of its own.
    await form().getByLabel('Reason').fill('one more');
    expect(await form().getByRole('alert').count()).toBe(0);
    await click('Preview');
    await click('Book it');
    await form().getByText('Booked. The balance is 46.00 USD.').waitFor();
    await click('Done');
    await page.getByRole('row', { name: /^Lost 46\.00 USD / }).waitFor();
    expect(await amounts()).toEqual([1_100, 1_000, 2_500]);
  });
}
