import type { Page } from 'playwright-core';

// Text, because these tests know no types of the browser. A hidden tab has no stream, and does not ask again.
const HIDDEN = `
  Object.defineProperty(Document.prototype, 'hidden', { get: () => true });
  Object.defineProperty(Document.prototype, 'visibilityState', { get: () => 'hidden' })`;

/** When pages ask for what they show. */
export function earlyTests(deployed: () => { base: string; tenantId: string; page: Page }): void {
  /**
   * Opens a page of the tenant in a hidden tab of its own. What `held` matches waits until `numbers` is asked for, so
   * the page never shows its numbers if it waits for that itself. The answer waits for the title of the page, so it is
   * fresh on a slow machine, too. Returns how often the numbers were asked for.
   */
  async function timesAsked(
    path: string,
    { numbers, held, title, shown }: { numbers: RegExp; held: RegExp; title: string; shown: string },
  ) {
    const { base, tenantId, page } = deployed();
    const tab = await page.context().newPage();
    try {
      let times = 0;
      let letThrough = () => {};
      const asked = new Promise<void>((resolve) => (letThrough = resolve));
      await tab.addInitScript(HIDDEN);
      await tab.route(held, (route) => asked.then(() => route.continue()));
      await tab.route(numbers, async (route) => {
        times++;
        letThrough();
        await tab.getByRole('heading', { name: title, exact: true }).waitFor();
        await route.continue();
      });
      await tab.goto(`${base}/console/t/${tenantId}/${path}`, { waitUntil: 'commit' });
      await tab.locator(shown).first().waitFor();
      return times;
    } finally {
      await tab.close();
    }
  }

  it('the Overview asks for its numbers once, and before any script has arrived', async () => {
    const numbers = /\/console\/api\/tenants\/ten_\w+\/overview$/;
    const [held, shown] = [/\/console\/assets\/.*\.js$/, '[data-figure="Balance"]'];
    expect(await timesAsked('overview', { numbers, held, title: 'Overview', shown })).toBe(1);
  });

  it('the Usage asks for its numbers once, and before its script and the person have arrived', async () => {
    const numbers = /\/console\/api\/tenants\/ten_\w+\/usage\?/;
    const held = /\/console\/(api\/me|assets\/usage-[^/]*\.js)$/;
    const shown = 'text=Download CSV';
    expect(await timesAsked('usage?days=7&by=key', { numbers, held, title: 'Usage', shown })).toBe(1);
  });

  it('the models of a filter are asked for when it is opened', async () => {
    const { base, tenantId, page } = deployed();
    const asked: string[] = [];
    const note = (request: { url: () => string }) => asked.push(request.url());
    const models = () => asked.filter((url) => url.endsWith('/models')).length;
    page.on('request', note);
    for (const [path, shown] of [
      ['usage?model=sim-small', page.getByRole('row', { name: /^Total/ })],
      ['requests?model=sim-small', page.getByRole('button', { name: /^Show the books of / }).first()],
    ] as const) {
      await page.goto(`${base}/console/t/${tenantId}/${path}`);
      await shown.waitFor();
      const field = page.locator('input[aria-label="Model"]');
      expect([path, await field.inputValue(), models()]).toEqual([path, 'sim-small', 0]);
      await field.click();
      await field.fill('sim-');
      await page.getByRole('option', { name: 'sim-large' }).waitFor();
      expect([path, models()]).toEqual([path, 1]);
      asked.length = 0;
    }
    page.off('request', note);
  });
}
