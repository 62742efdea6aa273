import type { Page } from 'playwright-core';
import { codeLineTests } from './code-lines.part';
import { useConsolePage } from '../browser/console-page';
import { dialogLookTests } from './dialog-looks.part';
import { acceptInvitation } from '../browser/entering';
import { followingTests } from './following.part';
import { invitationPageTests } from './invitation-pages.part';
import { lookingAt } from '../browser/looking';
import { backendOf } from '../browser/looks';
import { moneyFormTests } from './money-forms.part';
import { phoneTests } from './phone.part';
import { printingTests } from './printing.part';
import { returningTests } from './returning.part';
import { rolePageTests } from './role-pages.part';
import type { RunningConsole } from '../running/running-console';
import { shownOnceTests } from './shown-once.part';
import { unansweredTests } from './unanswered.part';

const { database, chromium, failures, opened } = useConsolePage({}, { reducedMotion: 'reduce' });
let console_: RunningConsole;
let page: Page;
const { violations } = lookingAt(() => page);
const forgetTries = () => database.query('DELETE FROM console."rateLimit"');

beforeAll(async () => {
  ({ console_, page } = opened());
  await acceptInvitation(page, console_.operatorLink!, { name: 'Grace Hopper', email: 'grace@example.com' });
  await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor();
});

moneyFormTests(() => ({ console_, page, call: backendOf(page), violations }));

unansweredTests(() => ({ console_, page, call: backendOf(page), violations }));

printingTests(() => ({ console_, page, database, call: backendOf(page) }));

codeLineTests(() => ({ console_, page, call: backendOf(page) }));

dialogLookTests(() => ({ console_, page, database, call: backendOf(page), violations }));

shownOnceTests(() => ({ console_, page, call: backendOf(page) }));

followingTests(() => ({ console_, page, call: backendOf(page) }));

phoneTests(() => ({ console_, page, call: backendOf(page) }));

rolePageTests(() => ({ console_, browser: chromium.browser, call: backendOf(page), forgetTries }));

returningTests(() => ({ console_, browser: chromium.browser, call: backendOf(page), forgetTries }));

invitationPageTests(() => ({ console_, page, browser: chromium.browser, call: backendOf(page), forgetTries }));

it('no script of these pages failed', () => {
  expect(failures).toEqual([]);
});
