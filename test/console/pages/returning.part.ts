import type { Page } from 'playwright-core';
import type { InvitationCreated } from '../../../apps/console/src/api/answers';
import { enterPassword } from '../browser/entering';
import { lookingAt } from '../browser/looking';
import { backendOf } from '../browser/looks';
import { PASSWORD, SESSION, secretOf } from '../running/people';
import { totpOf } from '../running/totp';
import type { InBrowsers } from '../running/deployed';

/** How a person with a second factor comes back to the page on which the session ended. */
export function returningTests(deployed: () => InBrowsers): void {
  const email = 'returning@example.com';
  let tenantId: string;
  // Every person of the tests calls from one address.
  beforeEach(() => deployed().forgetTries());
  beforeAll(async () => {
    const { call } = deployed();
    tenantId = ((await call('operator/tenants', { name: 'Returning' })) as { id: string }).id;
    const invitation = { email, role: 'admin' };
    const { link } = (await call(`tenants/${tenantId}/invitations`, invitation)) as InvitationCreated;
    await call('invitation/accept-as-new', { secret: secretOf(link!), name: 'Ada', email, password: PASSWORD });
  });

  async function withPage(use: (page: Page) => Promise<void>): Promise<void> {
    const context = await deployed().browser.newContext({ viewport: { width: 1280, height: 800 } });
    try {
      await use(await context.newPage());
    } finally {
      await context.close();
    }
  }
  const enterCode = async (page: Page, code: string) => {
    await page.getByLabel('Code').fill(code);
    await page.getByRole('button', { name: 'Continue' }).click();
  };

  it('after the session ended, the sign-in with a code as it is shown leads back to the page', () =>
    withPage(async (page) => {
      const { base } = deployed().console_;
      const call = backendOf(page);
      await page.goto(`${base}/console/sign-in`);
      await enterPassword(page, email);
      await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
      const { totpURI, backupCodes } = (await call('auth/two-factor/enable', { password: PASSWORD })) as {
        totpURI: string;
        backupCodes: string[];
      };
      await call('auth/two-factor/verify-totp', { code: totpOf(totpURI) });

      const filtered = `${base}/console/t/${tenantId}/requests?model=sim-small`;
      await page.context().clearCookies({ name: SESSION });
      await page.goto(filtered);
      await enterPassword(page, email);
      await page.getByLabel('Code').waitFor();
      expect(await lookingAt(() => page).violations()).toEqual([]);
      await enterCode(page, '12 34 5');
      await page.getByRole('alert').waitFor();
      // The first code was used above.
      await enterCode(page, totpOf(totpURI, 1).replace(/^(...)/, '$1 '));
      await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor();
      expect(page.url()).toBe(filtered);

      // A backup code, too. It works once.
      await page.context().clearCookies({ name: SESSION });
      await page.goto(filtered.replace('requests', 'usage'));
      await enterPassword(page, email);
      await enterCode(page, ` ${backupCodes[0]!} `);
      await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
    }));

  it('after a person signed out, the next sign-in begins at the first page', () =>
    withPage(async (page) => {
      const { base } = deployed().console_;
      await page.goto(`${base}/console/account`);
      await enterPassword(page, 'grace@example.com');
      await page.getByRole('heading', { name: 'Account', level: 1 }).waitFor();
      await page.getByRole('button', { name: 'Grace Hopper' }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await enterPassword(page, 'grace@example.com');
      await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor();
    }));

  it('a person whose sign-out failed sees that, and signs out by another try', () =>
    withPage(async (page) => {
      const { base } = deployed().console_;
      const signOut = '**/console/api/auth/sign-out';
      await page.goto(`${base}/console/account`);
      await enterPassword(page, 'grace@example.com');
      await page.getByRole('heading', { name: 'Account', level: 1 }).waitFor();
      await page.route(signOut, (route) => route.abort());
      await page.getByRole('button', { name: 'Grace Hopper' }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      const dialog = page.getByRole('dialog', { name: 'You are still signed in' });
      await dialog.getByText('The console does not answer.').waitFor();
      // The menu closes in an animation, and is half hidden meanwhile.
      await page.getByRole('menu').waitFor({ state: 'detached' });
      expect(await lookingAt(() => page).violations()).toEqual([]);
      await page.unroute(signOut);
      await dialog.getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
    }));

  it('a click after the session ended leads to the sign-in, and then to what was clicked', () =>
    withPage(async (page) => {
      const { base } = deployed().console_;
      await page.goto(`${base}/console/t/${tenantId}/models`);
      await enterPassword(page, 'grace@example.com');
      await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
      await page.context().clearCookies({ name: SESSION });
      await page.getByRole('link', { name: 'Members', exact: true }).click();
      await enterPassword(page, 'grace@example.com');
      await page.getByRole('heading', { name: 'Members', level: 1 }).waitFor();
      expect(page.url()).toBe(`${base}/console/t/${tenantId}/settings/members`);
    }));

  it('a page with live numbers leads to the sign-in by itself when the session ends', () =>
    withPage(async (page) => {
      const { base } = deployed().console_;
      const overview = `${base}/console/t/${tenantId}/overview`;
      await page.goto(overview);
      await enterPassword(page, 'grace@example.com');
      await page.locator('[data-figure="Balance"]').waitFor();
      // As in another tab.
      await backendOf(page)('auth/sign-out', {});
      await enterPassword(page, 'grace@example.com');
      await page.locator('[data-figure="Balance"]').waitFor();
      expect(page.url()).toBe(overview);
    }));

  it('neither an address nor a stored text leads a sign-in to another site', () =>
    withPage(async (page) => {
      const { base } = deployed().console_;
      const hostile = ['https://evil.example/', '//evil.example/console/', '/\\evil.example/', 'javascript:alert(1)'];
      for (const to of hostile) {
        const asked = encodeURIComponent(to);
        await page.goto(`${base}/console/sign-in?next=${asked}&redirect=${asked}&callbackURL=${asked}`);
        await page.evaluate(`sessionStorage.setItem('tollgate.asked-page', ${JSON.stringify(to)})`);
        await page.context().clearCookies();
        await enterPassword(page, 'role-viewer@example.com');
        await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
        expect(new URL(page.url()).origin).toBe(base);
      }
    }));
}
