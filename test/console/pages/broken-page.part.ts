import type { Page } from 'playwright-core';
import type { RunningConsole } from '../running/running-console';

const SCRIPT_OF_MODELS = /\/assets\/models-[^/]*\.js$/;

/** A page whose script does not arrive, as after an update that removed it. */
export function brokenPageTests(deployed: () => { console_: RunningConsole; page: Page }): void {
  it('a page whose script does not arrive says so, and is shown by another try', async () => {
    const { console_, page } = deployed();
    const tab = await page.context().newPage();
    try {
      await tab.route(SCRIPT_OF_MODELS, (route) => route.abort());
      await tab.goto(`${console_.base}/console/t/${console_.demo!.tenantId}/models`);
      await tab.getByRole('alert').getByText('The page could not be shown. Try again, or reload it.').waitFor();
      await tab.unroute(SCRIPT_OF_MODELS);
      await tab.getByRole('button', { name: 'Try again' }).click();
      await tab.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
    } finally {
      await tab.close();
    }
  });
}
