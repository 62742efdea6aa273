import { useTestDatabase } from '@tollgate/testing';
import type { BrowserContext, Page } from 'playwright-core';
import { useDataDirectory } from '../e2e/standalone-process';
import { useChromium } from './chromium';
import { codeLineTests } from './code-lines.part';
import { dialogLookTests } from './dialog-looks.part';
import { acceptInvitation } from './entering';
import { lookingAt } from './looking';
import { backendOf } from './looks';
import { moneyFormTests } from './money-forms.part';
import { returningTests } from './returning.part';
import { rolePageTests } from './role-pages.part';
import { startConsole, type RunningConsole } from './running-console';

/** A step of the browser never takes this long, however slow the machine is. */
const STEP_TIMEOUT_MS = 60_000;

// Before the database is dropped.
afterAll(async () => {
  await context?.close();
  await console_?.stop();
});
const database = useTestDatabase();
const directory = useDataDirectory();
const chromium = useChromium();
let console_: RunningConsole;
let context: BrowserContext;
let page: Page;
const { violations } = lookingAt(() => page);
const failures: string[] = [];
const forgetTries = () => database.query('DELETE FROM console."rateLimit"');

beforeAll(async () => {
  console_ = await startConsole({ DATABASE_URL: database.url, TOLLGATE_DATA_DIR: directory.path });
  context = await chromium.browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  context.setDefaultTimeout(STEP_TIMEOUT_MS);
  page = await context.newPage();
  page.on('pageerror', (error) => failures.push(String(error)));
  await acceptInvitation(page, console_.operatorLink!, { name: 'Grace Hopper', email: 'grace@example.com' });
  await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor();
});

moneyFormTests(() => ({ console_, page, call: backendOf(page), violations }));

codeLineTests(() => ({ console_, page, call: backendOf(page) }));

dialogLookTests(() => ({ console_, page, call: backendOf(page), violations }));

rolePageTests(() => ({ console_, browser: chromium.browser, call: backendOf(page), forgetTries }));

returningTests(() => ({ console_, browser: chromium.browser, call: backendOf(page), forgetTries }));

it('no script of these pages failed', () => {
  expect(failures).toEqual([]);
});
