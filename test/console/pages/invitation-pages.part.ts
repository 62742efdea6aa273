import type { Page } from 'playwright-core';
import type { InvitationCreated } from '../../../apps/console/src/api/answers';
import type { InBrowsers } from '../running/deployed';
import { acceptInvitation } from '../browser/entering';

const UNAVAILABLE = {
  status: 503,
  json: { error: { code: 'unavailable', message: 'A service does not answer now.', requestId: 'req_1' } },
};

/** The page of an invitation, while the console has an outage. `page`: of a person who is signed in. */
export function invitationPageTests(deployed: () => InBrowsers & { page: Page }): void {
  const invite = async (email: string) => {
    const { call, forgetTries } = deployed();
    await forgetTries();
    const { id } = (await call('operator/tenants', { name: 'Inviting in an outage' })) as { id: string };
    return ((await call(`tenants/${id}/invitations`, { email, role: 'viewer' })) as InvitationCreated).link!;
  };

  it('a person who is signed in is not offered another account while that is unknown', async () => {
    const { page } = deployed();
    const link = await invite('grace@example.com');
    await page.route('**/console/api/me', (route) => route.fulfill(UNAVAILABLE));
    await page.goto(link);
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('button', { name: 'Make the account' }).count()).toBe(0);
    await page.unroute('**/console/api/me');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Accept as grace@example.com' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('after the account is created, only a sign-in that failed is repeated', async () => {
    const { browser } = deployed();
    const link = await invite('late@example.com');
    const context = await browser.newContext();
    try {
      const page = await context.newPage();
      await page.route('**/auth/sign-in/email', (route) => route.fulfill(UNAVAILABLE), { times: 1 });
      await acceptInvitation(page, link, { name: 'Late' });
      await page.getByText('The account exists now, but the sign-in failed.').waitFor();
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    } finally {
      await context.close();
    }
  });
}
