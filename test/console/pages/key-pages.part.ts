import type { Page } from 'playwright-core';
import type { LookAt } from '../browser/looking';
import { openPage } from '../browser/looks';

/** The forms that change and rotate a key. */
export function keyPageTests(
  deployed: () => {
    base: string;
    tenantId: string;
    page: Page;
    violations: () => Promise<string[]>;
    picture: (path: string, look: string) => Promise<void>;
  },
): void {
  it('a key is changed and rotated on its page, and its next secret is shown once', async () => {
    const { page, violations, picture, ...at } = deployed();
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
    await openPage(page, at, ['keys', 'Keys']);
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Name').fill('to be changed');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const key = page.getByLabel('Key', { exact: true });
    const first = (await key.textContent())!.trim();
    await page.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('button', { name: 'Change to be changed' }).click();
    const form = page.getByRole('dialog', { name: 'Change the key to be changed' });
    await form.getByLabel('Name').fill('changed');
    await form.getByLabel('Owner').fill('team-search');
    await form.getByLabel('Tags').fill('batch');
    await page.keyboard.press('Enter');
    await form.getByLabel('Models').fill('sim-small');
    await page.keyboard.press('Enter');
    // Closes the list of choices.
    await page.keyboard.press('Tab');
    expect(await violations()).toEqual([]);
    await picture('key-change', 'light');
    await form.getByRole('button', { name: 'Save' }).click();
    const row = page.getByRole('row', { name: /^changed\s*team-search\s*batch/ });
    await row.waitFor();
    expect(await row.textContent()).toContain('sim-small');

    await row.getByRole('button', { name: 'Rotate changed' }).click();
    await page.getByRole('button', { name: 'Make the next secret' }).click();
    const second = (await key.textContent())!.trim();
    expect(second).toMatch(/^sk-svc-/);
    expect(second).not.toBe(first);
    expect(await violations()).toEqual([]);
    await page.getByRole('button', { name: 'Done' }).click();
    await row.getByText(`…${second.slice(-4)}`).waitFor();
    await row.getByText('former secret works until').waitFor();
    expect(await page.content()).not.toContain(second);
    await picture('keys-rotated', 'light');
  });

  it('a key gets a budget with thresholds, and its bar shows what is used and held', async () => {
    const { base, tenantId, page, violations, picture } = deployed();
    await openPage(page, { base, tenantId }, ['settings/budgets', 'Budgets']);
    await page.getByLabel('Give another key a budget').first().click();
    await page.getByRole('option', { name: /^demo …/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Budget of demo' });
    await dialog.getByLabel('Budget', { exact: true }).first().click();
    await page.getByRole('option', { name: 'an amount each month' }).click();
    await dialog.getByLabel('Amount a month (USD)').fill('5');
    await dialog.getByLabel('Thresholds (%)').fill('90, 40');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByLabel('Thresholds (%)').fill('40, 90');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /^demo .* of 5\.00 USD .*40 %.* 90 %/ }).waitFor();
    await openPage(page, { base, tenantId }, ['keys', 'Keys']);
    await page.getByRole('row', { name: /^demo .* of 5\.00 USD .*0\.00 held/ }).waitFor();
    expect(await violations()).toEqual([]);
    await picture('keys-budget', 'light');
  });
}

/** What pages show after a click, with the looks of the others. */
export function clickedPageTests(deployed: () => { base: string; tenantId: string; page: Page; lookAt: LookAt }): void {
  it('the answer of the playground has no violation of axe in light, dark and on a phone', async () => {
    const { page, lookAt, ...at } = deployed();
    await lookAt(at, ['models', 'Models'], {
      name: null,
      moves: true,
      isShown: async () => {
        await page.getByLabel('Maximum output tokens').first().fill('20');
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByLabel('Answer', { exact: true }).waitFor();
        await page.getByRole('link', { name: 'Show its books' }).waitFor();
      },
    });
  });

  it('the dialog of a new key has none either, before and after the key is created', async () => {
    const { page, lookAt, ...at } = deployed();
    const dialog = page.getByRole('dialog');
    const open = async () => {
      await page.getByRole('button', { name: 'Create a key' }).click();
      await dialog.getByLabel('Name').fill('looked at');
    };
    await lookAt(at, ['keys', 'Keys'], { name: null, moves: true, isShown: open });
    await lookAt(at, ['keys', 'Keys'], {
      name: null,
      moves: true,
      isShown: async () => {
        await open();
        await dialog.getByRole('button', { name: 'Create', exact: true }).click();
        await dialog.getByLabel('Key', { exact: true }).waitFor();
      },
    });
  });
}
