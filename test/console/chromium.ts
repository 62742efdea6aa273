import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const PATH = '/usr/bin/chromium';
const LAUNCH_TIMEOUT_MS = 120_000;

/** Debian's Chromium, for the calling test file. Background services of the browser would look up foreign hosts. */
export function useChromium(): { readonly browser: Browser } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!existsSync(PATH)) throw new Error(`these tests need ${PATH}: apt-get install chromium`);
    browser = await chromium.launch({
      executablePath: PATH,
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
