import { useTestDatabase } from '@tollgate/testing';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { useDataDirectory } from '../../e2e/standalone-process';
import { useChromium } from './chromium';
import { startConsole, type RunningConsole } from '../running/running-console';

/** A step of the browser never takes this long, however slow the machine is. */
export const STEP_TIMEOUT_MS = 60_000;

/**
 * A standalone with its console, and a page of a browser, for the tests of a file. `failures`: what scripts threw, and
 * what broke the policy of the pages.
 */
export function useConsolePage(settings: Record<string, string>, options: BrowserContextOptions = {}) {
  let console_: RunningConsole | undefined;
  let page: Page | undefined;
  const failures: string[] = [];
  // Before the database is dropped.
  afterAll(async () => {
    await page?.context().close();
    await console_?.stop();
  });
  const database = useTestDatabase();
  const directory = useDataDirectory();
  const chromium = useChromium();
  beforeAll(async () => {
    console_ = await startConsole({ DATABASE_URL: database.url, TOLLGATE_DATA_DIR: directory.path, ...settings });
    // bypassCSP stays off: the pages must work under their own policy.
    const context = await chromium.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(STEP_TIMEOUT_MS);
    page = await context.newPage();
    page.on('pageerror', (error) => failures.push(String(error)));
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) failures.push(message.text());
    });
  });
  return { database, chromium, failures, opened: () => ({ console_: console_!, page: page! }) };
}
