import type { Browser, Page } from 'playwright-core';
import type { RunningConsole } from './running-console';

/** What the parts of the tests in a browser are given. `call`: of the backend, as the person of the page. */
export interface OnPage {
  console_: RunningConsole;
  page: Page;
  call: (path: string, body?: unknown) => Promise<unknown>;
}

/** `violations`: what axe finds on the page now. */
export interface OnPageWithAxe extends OnPage {
  violations: () => Promise<string[]>;
}

/** For several people, each in a browser of its own. */
export interface InBrowsers {
  console_: RunningConsole;
  browser: Browser;
  call: (path: string, body?: unknown) => Promise<unknown>;
  /** Every person of the tests calls from one address, whose tries are limited. */
  forgetTries: () => Promise<unknown>;
}
