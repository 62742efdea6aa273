import type { Page } from 'playwright-core';

/** The pages of a tenant (no slash at the beginning) and the others, with their titles. */
export const PAGES = [
  ['overview', 'Overview'],
  ['usage', 'Usage'],
  ['requests', 'Requests'],
  ['keys', 'Keys'],
  ['credit', 'Credit'],
  ['models', 'Models'],
  ['settings/tokens', 'Management tokens'],
  ['settings/members', 'Members'],
  ['settings/budgets', 'Budgets'],
  ['settings/audit', 'Audit'],
  ['/account', 'Account'],
  ['/operator/fleet', 'Fleet'],
  ['/operator/tenants', 'Tenants'],
  ['/operator/people', 'People'],
  ['/operator/invoices', 'Invoices'],
  ['/operator/plans', 'Plans and prices'],
  ['/operator/audit', 'Audit'],
] as const;

/** More stops of the Tab key than any page has. */
const MAX_STOPS = 400;
/** The stops between two looks at whether it is at the end. */
const STOPS_AT_ONCE = 10;

/** Opens a page, and waits until it shows what it loads. */
export async function openPage(
  page: Page,
  { base, tenantId }: { base: string; tenantId: string },
  [path, title]: readonly [string, string],
): Promise<void> {
  // A secret behind # is read only when the page is loaded.
  if (path.includes('#')) await page.goto('about:blank');
  await page.goto(base + (path.startsWith('/') ? `/console${path}` : `/console/t/${tenantId}/${path}`));
  await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor();
  await page.locator('[aria-label="Loading"], .mantine-Skeleton-root').first().waitFor({ state: 'detached' });
}

// What follows runs in the page, so it is text: these tests know no types of the browser.
// The Tab key goes on from where the last click was, so the beginning is focused. From there on, what it reaches is
// marked. What it reaches again is behind the end.
const FORGET = `(() => {
  const beginning = document.createElement('span');
  beginning.tabIndex = -1;
  (document.querySelector('[aria-modal="true"]') ?? document.body).prepend(beginning);
  beginning.focus();
  beginning.remove();
  for (const one of document.querySelectorAll('[data-reached]')) one.removeAttribute('data-reached');
  globalThis.isAtEnd = false;
  globalThis.onReach ??= ({ target }) => {
    globalThis.isAtEnd ||= target.hasAttribute('data-reached');
    target.setAttribute('data-reached', '');
  };
  document.addEventListener('focusin', globalThis.onReach);
})()`;
const IS_AT_END = 'globalThis.isAtEnd';
// The Tab key stops at the chosen tab of several, and arrows lead to the others. The same holds for radio buttons.
const NOT_REACHED = `(() => {
  const usable =
    'a[href], button:not([role="tab"][aria-selected="false"]), input, select, textarea, ' +
    '[role="button"], [role="slider"]';
  const choices = new Set([...document.querySelectorAll('input[type="radio"][data-reached]')].map(({ name }) => name));
  // A dialog keeps the keyboard until it is closed.
  const place = document.querySelector('[aria-modal="true"]') ?? document;
  return [...place.querySelectorAll(usable)]
    .filter((one) => {
      const isShown = one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
      const isChoice = one.type === 'radio' && choices.has(one.name);
      const isDisabled = one.matches(':disabled, [data-disabled], [aria-hidden="true"], [aria-hidden="true"] *');
      return isShown && !isDisabled && !isChoice && !one.hasAttribute('data-reached');
    })
    .map((one) => one.outerHTML.slice(0, 160));
})()`;
const SHIFT = `new Promise((resolve) => {
  let sum = 0;
  const add = (entries) => {
    for (const { value, hadRecentInput } of entries) if (!hadRecentInput) sum += value;
  };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: 'layout-shift', buffered: true });
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      add(observer.takeRecords());
      observer.disconnect();
      resolve(sum);
    }),
  );
})`;

/** What a mouse can use on the page and the Tab key does not stop at. */
export async function unreachableByKeyboard(page: Page): Promise<string[]> {
  await page.evaluate(FORGET);
  for (let stops = 0; stops < MAX_STOPS && !(await page.evaluate<boolean>(IS_AT_END)); stops += STOPS_AT_ONCE)
    for (let stop = 0; stop < STOPS_AT_ONCE; stop++) await page.keyboard.press('Tab');
  return page.evaluate<string[]>(NOT_REACHED);
}

/** How far the content of the page moved while it loaded (cumulative layout shift). */
export const layoutShift = (page: Page): Promise<number> => page.evaluate<number>(SHIFT);

/** Calls the backend as the page does, with the session of its person. A call with a body is a write. */
export const backendOf =
  (page: Page) =>
  (path: string, body?: unknown): Promise<unknown> =>
    page.evaluate<unknown, [string, unknown]>(
      async ([url, value]) => {
        const write = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) };
        return (await fetch(url, value === undefined ? {} : write)).json();
      },
      [`/console/api/${path}`, body],
    );
