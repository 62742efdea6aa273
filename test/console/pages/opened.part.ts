import type { Browser } from 'playwright-core';
import type { InvitationCreated } from '../../../apps/console/src/api/answers';
import { lookingAt } from '../browser/looking';
import { secretOf } from '../running/people';
import type { RunningConsole } from '../running/running-console';

/** The pages of people who are not signed in. */
export function openedTests(
  deployed: () => {
    console_: RunningConsole;
    browser: Browser;
    call: (path: string, body?: unknown) => Promise<unknown>;
  },
): void {
  it('the pages to sign in and to accept an invitation have the looks of the others', async () => {
    const { console_, browser, call } = deployed();
    const { id } = (await call('operator/tenants', { name: 'Inviting' })) as { id: string };
    const invitation = { email: 'invited@example.com', role: 'member' };
    const { link } = (await call(`tenants/${id}/invitations`, invitation)) as InvitationCreated;
    const context = await browser.newContext();
    try {
      const opened = await context.newPage();
      const { lookAt } = lookingAt(() => opened);
      const at = { base: console_.base, tenantId: id };
      await lookAt(at, ['/sign-in', 'Tollgate'], { name: 'sign-in' });
      await lookAt(at, [`/invitation#${secretOf(link!)}`, 'Your invitation'], {
        name: 'invitation',
        isShown: () => opened.getByRole('button', { name: 'Make the account' }).waitFor(),
      });
    } finally {
      await context.close();
    }
  });
}
