import type { Page, Request } from 'playwright-core';
import type { BillingSummary, BudgetList, MemberList, TenantList } from '../../../apps/console/src/api/answers';
import { openPage } from '../browser/looks';
import type { OnPageWithAxe } from '../running/deployed';

/** What a person enters, and what the pages show: U+2212 is the minus sign of negative amounts. */
const BOOKINGS = [
  { kind: 'top-up', amount: '25', reason: 'paid by transfer', type: 'topup', shown: '25.00', after: '25.00' },
  { kind: 'refund', amount: '10.5', reason: 'paid back', type: 'refund', shown: '−10.50', after: '14.50' },
  { kind: 'adjustment (signed)', amount: '0.29', reason: 'too low', type: 'adjustment', shown: '0.29', after: '14.79' },
  { kind: 'adjustment (signed)', amount: '-12', reason: 'wrong', type: 'adjustment', shown: '−12.00', after: '2.79' },
] as const;

const centsOf = (shown: string) => Math.round(Number(shown.replace('−', '-')) * 100);

/** An operator creates a tenant, books its credit and invites its first person, in the browser. */
export function moneyFormTests(deployed: () => OnPageWithAxe): void {
  let tenantId: string;

  /** The dialog of a booking, filled in, when its preview is asked for. */
  async function preview({ kind, amount, reason }: { kind: string; amount: string; reason: string }) {
    const { page } = deployed();
    await page.getByRole('button', { name: 'Credit of Booked' }).click();
    const dialog = page.getByRole('dialog', { name: 'Credit of Booked' });
    await dialog.getByRole('combobox', { name: 'Kind' }).click();
    await page.getByRole('option', { name: kind }).click();
    await dialog.getByLabel('Amount (USD)').pressSequentially(amount);
    await dialog.getByLabel('Reason').fill(reason);
    await dialog.getByRole('button', { name: 'Preview' }).click();
    return dialog;
  }

  it('an operator creates a tenant in a form', async () => {
    const { console_, page, call, violations } = deployed();
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
    await page.getByRole('button', { name: 'Create a tenant' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a tenant' });
    await dialog.getByLabel('Name').fill('Booked');
    expect(await violations()).toEqual([]);
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('row', { name: /^Booked 0\.00 USD active / }).waitFor();
    const { data } = (await call('operator/tenants?search=Booked')) as TenantList;
    tenantId = data[0]!.id;
  });

  it.each(BOOKINGS)(
    'a booking ($kind of $amount) is previewed with its sign, and booked as it was previewed',
    async ({ kind, amount, reason, type, shown, after }) => {
      const { page, call, violations } = deployed();
      const balance = async () => ((await call(`tenants/${tenantId}/credit`)) as BillingSummary).balanceCents;
      const before = await balance();
      const dialog = await preview({ kind, amount, reason });
      await dialog.getByRole('row', { name: `Entry ${type} of ${shown} USD`, exact: true }).waitFor();
      await dialog.getByRole('row', { name: new RegExp(`^Balance .* → ${after} USD$`) }).waitFor();
      expect(await violations()).toEqual([]);
      // A preview books nothing.
      expect(await balance()).toBe(before);
      await dialog.getByRole('button', { name: 'Book it' }).click();
      await dialog.getByText(`Booked. The balance is ${after} USD.`).waitFor();
      expect(await violations()).toEqual([]);
      await dialog.getByRole('button', { name: 'Done' }).click();
      expect(await balance()).toBe(centsOf(after));
      await page.getByRole('row', { name: `Booked ${after} USD active`, exact: false }).waitFor();
    },
  );

  it.each([
    ['refund', '2.80', 'The balance is smaller than this amount. Choose a smaller one.'],
    ['adjustment (signed)', '-2.80', 'The balance is smaller than this amount. Choose a smaller one.'],
    ['top-up', '0', 'The amount must be above zero. Only an adjustment may be below.'],
    ['adjustment (signed)', '0', 'The amount must be above zero. Only an adjustment may be below.'],
  ])('a preview of a %s of %s, which cannot be booked, is refused with the reason', async (kind, amount, reason) => {
    const dialog = await preview({ kind, amount, reason: 'not booked' });
    await dialog.getByText(reason).waitFor();
    expect(await dialog.getByRole('button', { name: 'Book it' }).count()).toBe(0);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
  });

  it('the entries are on the page of the credit, each with the balance after it', async () => {
    const { console_, page, call } = deployed();
    await openPage(page, { base: console_.base, tenantId }, ['credit', 'Credit']);
    const { entries, balanceCents } = (await call(`tenants/${tenantId}/credit`)) as BillingSummary;
    const newestFirst = BOOKINGS.toReversed();
    expect(entries.map((entry) => [entry.type, entry.amountCents])).toEqual(
      newestFirst.map(({ type, shown }) => [type, centsOf(shown)]),
    );
    await page.getByText(`The balance is ${BOOKINGS.at(-1)!.after} USD.`).waitFor();
    expect(balanceCents).toBe(centsOf(BOOKINGS.at(-1)!.after));
    const rows = await page.getByRole('region', { name: 'Entries' }).getByRole('row').allInnerTexts();
    // The first row has the titles.
    expect(rows.slice(1).map((row) => row.split('\t').slice(1, 4))).toEqual(
      newestFirst.map(({ type, shown, after }) => [type, `${shown} USD`, `${after} USD`]),
    );
  });

  it.each([
    [
      'a double click on the preview',
      async (page: Page) => {
        await page.mouse.down({ clickCount: 2 });
        await page.mouse.up({ clickCount: 2 });
      },
    ],
    [
      'an Enter that is held',
      async (page: Page) => {
        // After a change, there is another preview.
        await page.getByLabel('Reason').press('End');
        await page.keyboard.type('!');
        await page.keyboard.down('Enter');
        await page.getByRole('button', { name: 'Book it' }).waitFor();
        // Down again without up in between.
        await page.keyboard.down('Enter');
        await page.keyboard.up('Enter');
      },
    ],
  ])('%s books nothing: the person has not read the preview', async (_, act) => {
    const { console_, page, call } = deployed();
    const balance = async () => ((await call(`tenants/${tenantId}/credit`)) as BillingSummary).balanceCents;
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
    const before = await balance();
    const dialog = await preview({ kind: 'top-up', amount: '1', reason: 'read first' });
    const book = dialog.getByRole('button', { name: 'Book it' });
    await book.hover();
    const booked: string[] = [];
    const note = (request: Request) => {
      if (request.url().endsWith('/credit')) booked.push(request.method());
    };
    page.on('request', note);
    await act(page);
    await book.click();
    await dialog.getByText('Booked. The balance is').waitFor();
    page.off('request', note);
    expect(booked).toEqual(['POST']);
    expect(await balance()).toBe(before + 100);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await dialog.waitFor({ state: 'detached' });
  });

  it('a budget is saved only if its amount is a number: a lone minus sign does not remove it', async () => {
    const { console_, page, call, violations } = deployed();
    const budgetCents = async () => ((await call(`tenants/${tenantId}/budgets`)) as BudgetList).tenant.budgetCents;
    await openPage(page, { base: console_.base, tenantId }, ['settings/budgets', 'Budgets']);
    const dialog = page.getByRole('dialog', { name: 'Budget of all keys together' });
    const amount = dialog.getByLabel('Amount a month (USD)');
    const save = dialog.getByRole('button', { name: 'Save' });
    const open = () => page.getByRole('button', { name: 'Change: Budget of all keys together' }).click();
    await open();
    await dialog.getByRole('combobox', { name: 'Budget' }).click();
    await page.getByRole('option', { name: 'an amount each month' }).click();
    await amount.pressSequentially('5');
    await save.click();
    await dialog.waitFor({ state: 'detached' });
    expect(await budgetCents()).toBe(500);
    await open();
    for (const typed of ['-', '.', '']) {
      await amount.fill('');
      await amount.pressSequentially(typed);
      expect([typed, await save.isDisabled()]).toEqual([typed, true]);
    }
    expect(await violations()).toEqual([]);
    await amount.pressSequentially('7.5');
    await amount.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(await budgetCents()).toBe(750);
  });

  it('a person is invited in a form, and withdrawn again', async () => {
    const { console_, page, call, violations } = deployed();
    await openPage(page, { base: console_.base, tenantId }, ['settings/members', 'Members']);
    await page.getByRole('button', { name: 'Invite a person' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite a person' });
    await dialog.getByLabel('E-mail').fill('Booker@example.com');
    await dialog.getByRole('combobox', { name: 'Role' }).click();
    await page.getByRole('option', { name: /^billing/ }).click();
    expect(await violations()).toEqual([]);
    await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
    const link = (await dialog.getByLabel('Link', { exact: true }).textContent())!;
    expect(link).toMatch(new RegExp(`^${console_.base}/console/invitation#[\\w-]{43}$`));
    expect(await violations()).toEqual([]);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /^booker@example\.com billing / }).waitFor();
    expect(await page.content()).not.toContain(link);
    const { invitations } = (await call(`tenants/${tenantId}/members`)) as MemberList;
    expect(invitations).toMatchObject([{ email: 'booker@example.com', role: 'billing' }]);
    await page.getByRole('button', { name: 'Withdraw the invitation of booker@example.com' }).click();
    await page.getByText('There are none.').waitFor();
    expect(((await call(`tenants/${tenantId}/members`)) as MemberList).invitations).toEqual([]);
  });
}
