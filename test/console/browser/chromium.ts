import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

/** The shell has no window, and needs a quarter less processor time. */
const PATHS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const LAUNCH_TIMEOUT_MS = 120_000;

/** Debian's Chromium, for the calling test file. Background services of the browser would look up foreign hosts. */
export function useChromium(): { readonly browser: Browser } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    const executablePath = PATHS.find((path) => existsSync(path));
    if (!executablePath) throw new Error(`these tests need ${PATHS[0]}: apt-get install chromium-headless-shell`);
    browser = await chromium.launch({
      executablePath,
      timeout: LAUNCH_TIMEOUT_MS,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    });
  });
  afterAll(() => browser?.close());
  return {
    get browser() {
      return browser!;
    },
  };
}
