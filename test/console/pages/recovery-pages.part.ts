import type { Browser, Page } from 'playwright-core';
import type { InvitationCreated, PeopleList } from '../../../apps/console/src/api/answers';
import { lookingAt } from '../browser/looking';
import { openPage } from '../browser/looks';
import { PASSWORD, secretOf } from '../running/people';
import type { RunningConsole } from '../running/running-console';

const NEXT_PASSWORD = 'the password of the link';

/** How a person who forgot the password comes back, and how a person leaves. */
export function recoveryPageTests(
  deployed: () => {
    console_: RunningConsole;
    page: Page;
    browser: Browser;
    call: (path: string, body?: unknown) => Promise<unknown>;
  },
): void {
  it('an operator shows a link once, its page sets a password, and the person erases its account', async () => {
    const { console_, page, browser, call } = deployed();
    const at = { base: console_.base, tenantId: '' };
    await page.setViewportSize({ width: 1280, height: 800 });
    const { id } = (await call('operator/tenants', { name: 'Forgetting' })) as { id: string };
    const email = 'forgetful@example.com';
    const { link } = (await call(`tenants/${id}/invitations`, { email, role: 'member' })) as InvitationCreated;
    await call('invitation/accept-as-new', { secret: secretOf(link!), name: 'Forgetful', email, password: PASSWORD });
    const { data } = (await call(`operator/people?search=${email}`)) as PeopleList;
    expect(data).toMatchObject([{ email, tenants: 1 }]);

    const dialog = page.getByRole('dialog', { name: 'A new password for Forgetful' });
    const makeLink = async (): Promise<string> => {
      await page.getByRole('button', { name: 'Make a password link for Forgetful' }).click();
      await dialog.getByLabel('Your password').first().fill(PASSWORD);
      await dialog.getByRole('button', { name: 'Make the link' }).click();
      const made = (await dialog.getByLabel('Link', { exact: true }).textContent())!.trim();
      await dialog.getByRole('button', { name: 'Done' }).click();
      expect(await page.content()).not.toContain(secretOf(made));
      return made;
    };
    await openPage(page, at, ['/operator/people', 'People']);
    const found = page.waitForResponse((answer) => answer.url().includes('/operator/people?search='));
    await page.getByLabel('Search by name or e-mail').fill(email);
    await found;
    const byOperator = await makeLink();
    await openPage(page, { ...at, tenantId: id }, ['settings/members', 'Members']);
    await makeLink();

    const context = await browser.newContext();
    try {
      const opened = await context.newPage();
      const { lookAt, violations } = lookingAt(() => opened);
      await lookAt(at, [`/reset-password#${secretOf(byOperator)}`, 'A new password'], {
        name: 'reset-password',
        isShown: () => opened.getByRole('button', { name: 'Set the password' }).waitFor(),
      });
      expect(opened.url()).not.toContain('#');
      await opened.getByLabel('New password').first().fill(NEXT_PASSWORD);
      await opened.getByRole('button', { name: 'Set the password' }).click();
      await opened.getByRole('link', { name: 'Sign in' }).click();
      await opened.getByLabel('E-mail').fill(email);
      await opened.getByLabel('Password', { exact: false }).first().fill(NEXT_PASSWORD);
      await opened.getByRole('button', { name: 'Sign in', exact: true }).click();
      await opened.getByRole('heading', { name: 'Overview' }).waitFor();

      await lookAt(at, [`/reset-password#${secretOf(byOperator)}`, 'A new password'], {
        name: null,
        isShown: () => opened.getByText('This link has already been used').waitFor(),
      });
      await opened.getByRole('link', { name: 'Ask for a new link' }).click();
      await opened.getByText('This console sends no mail.').waitFor();

      const erasure = opened.getByRole('dialog', { name: 'Erase the account' });
      await lookAt(at, ['/account', 'Account'], {
        name: null,
        moves: true,
        isShown: async () => {
          await opened.getByRole('button', { name: 'Erase the account' }).click();
          await erasure.getByText('This cannot be undone.').waitFor();
        },
      });
      const erase = erasure.getByRole('button', { name: 'Erase', exact: true });
      expect(await erase.isDisabled()).toBe(true);
      await erasure.getByLabel(`Type ${email} to confirm`).fill(email);
      await erasure.getByLabel('Your password').first().fill(NEXT_PASSWORD);
      expect(await violations()).toEqual([]);
      await erase.click();
      await opened.getByRole('heading', { name: 'Tollgate', level: 1 }).waitFor();
      expect(((await call(`operator/people?search=${email}`)) as PeopleList).data).toEqual([]);
    } finally {
      await context.close();
    }
  });

  it('the page for a forgotten password has the looks of the others, with mail and without', async () => {
    const { console_, browser } = deployed();
    const at = { base: console_.base, tenantId: '' };
    const context = await browser.newContext();
    try {
      const opened = await context.newPage();
      const { lookAt } = lookingAt(() => opened);
      await openPage(opened, at, ['/sign-in', 'Tollgate']);
      await opened.getByRole('link', { name: 'Forgot your password?' }).click();
      await opened.getByText('An operator of it, or an owner of your tenant, can make a link').waitFor();
      await lookAt(at, ['/forgot-password', 'Forgot your password?'], { name: null });
      // This console has no server for mail: recovery.part.ts sends some.
      const options = { json: { oidc: false, mail: true } };
      await opened.route('**/sign-in-options', (route) => route.fulfill(options));
      await opened.route('**/recovery/request', (route) => route.fulfill({ status: 204 }));
      await lookAt(at, ['/forgot-password', 'Forgot your password?'], {
        name: 'forgot-password',
        isShown: () => opened.getByRole('button', { name: 'Send the link' }).waitFor(),
      });
      await opened.getByLabel('E-mail').fill('somebody@example.com');
      await opened.getByRole('button', { name: 'Send the link' }).click();
      await opened.getByText('If somebody@example.com has an account with a password').waitFor();
    } finally {
      await context.close();
    }
  });
}
