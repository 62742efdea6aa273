// Measures the pages of the console in Debian's Chromium, each in a new browser profile: when a page is usable, which
// is when its title and all its numbers are there, and how far its content moved until then. Each page is opened as the
// backend answers, and again with answers that are late by different times, which shows what moves on a slow machine.
// Build first (npm run build), then:
//   node tools/bench/console-pages.mjs [recorded events, 20000] [times that each page is opened, 10] [title of a page]
// Instead of the number of events, a data directory of `npm run bench -- --books` may be given.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { ROOT } from '../setup/prepare.mjs';
import { configOf } from './gateways/tollgate.mjs';
import { fill, keptBooks } from './growth/books.mjs';
import { REST, startNode } from './machine/processes.mjs';
import { atEnd, takeDown } from './machine/take-down.mjs';
import { table } from './report/print.mjs';

const [, , GIVEN = '20000', TIMES_GIVEN = '10', ONLY] = process.argv;
const TIMES = Number(TIMES_GIVEN);
const KEPT = existsSync(GIVEN) ? keptBooks(GIVEN) : null;
const EVENTS = KEPT ? KEPT.events : Number(GIVEN);
const PAGES = [
  ['overview', 'Overview'],
  ['usage', 'Usage'],
  ['requests', 'Requests'],
  ['keys', 'Keys'],
  ['credit', 'Credit'],
  ['models', 'Models'],
  ['settings/tokens', 'Management tokens'],
  ['settings/budgets', 'Budgets'],
  ['settings/audit', 'Audit'],
  ['/operator/fleet', 'Fleet'],
  ['/operator/tenants', 'Tenants'],
  ['/operator/invoices', 'Invoices'],
];
const WIDTHS = [1280, 375];
const CREDIT_CENTS = 100_000_000_000;
/** How late the answers are, one after the other. */
const LATE_MS = [500, 50, 300, 150];
const PASSWORD = 'correct horse battery staple';
const PAGE_TIMEOUT_MS = 60_000;
// Runs in the page: the sum of all layout shifts so far.
const SHIFT = `new Promise((resolve) => {
  new PerformanceObserver((list, observer) => {
    observer.disconnect();
    resolve(list.getEntries().reduce((sum, { value, hadRecentInput }) => sum + (hadRecentInput ? 0 : value), 0));
  }).observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => resolve(0), 200);
})`;

try {
  const running = await startConsole();
  if (!KEPT) await fillBooks(running);
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  atEnd(() => browser.close());
  const storageState = await makeOperator(browser, running);
  const rows = [];
  for (const [path, title] of PAGES.filter((page) => ONLY === undefined || page[1] === ONLY)) {
    const soon = await samples(browser, { storageState, running, path, title, late: false });
    const late = await samples(browser, { storageState, running, path, title, late: true });
    const usable = soon.map(({ usableMs }) => usableMs).sort((a, b) => a - b);
    rows.push([
      title,
      String(Math.round(usable[Math.floor(usable.length / 2)])),
      String(Math.round(usable[Math.floor(usable.length * 0.95)])),
      Math.max(...soon.map(({ shift }) => shift)).toFixed(3),
      Math.max(...late.map(({ shift }) => shift)).toFixed(3),
    ]);
    process.stderr.write(`${rows.at(-1).join(', ')}\n`);
  }
  const head = ['page', 'usable, median ms', 'p95 ms', 'largest shift', 'with late answers'];
  console.log(
    `${EVENTS} events, ${TIMES} times at each width (${WIDTHS.join(', ')} px), load ${loadavg()[0].toFixed(1)}\n`,
  );
  console.log(table(head, rows));
} finally {
  await takeDown();
}

async function startConsole() {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  atEnd(async () => rmSync(home, { recursive: true, force: true }));
  const data = KEPT ? resolve(GIVEN) : join(home, 'data');
  const config = join(home, 'tollgate.yaml');
  // Kept books have the models of this configuration. No page asks their backend.
  writeFileSync(config, configOf('http://127.0.0.1:9'));
  const running = startNode(REST, [join(ROOT, 'apps/standalone/dist/main.js'), '--json'], {
    env: {
      TOLLGATE_PORT: '0',
      TOLLGATE_OPERATOR_PORT: '0',
      TOLLGATE_DATA_DIR: data,
      TOLLGATE_LOG_LEVEL: 'warn',
      TOLLGATE_DEMO: 'true',
      ...(KEPT && { TOLLGATE_CONFIG: config }),
    },
  });
  const ready = JSON.parse(await running.firstLine);
  const [, , , port, host] = readFileSync(join(data, 'postgres/postmaster.pid'), 'utf8').split('\n');
  const password = readFileSync(join(data, 'postgres.password'), 'utf8').trim();
  const database = { host, port, user: 'postgres', password, database: 'tollgate' };
  return { ...ready, tenantId: KEPT ? KEPT.tenants[0].tenantId : ready.demo.tenantId, database };
}

async function ask({ operatorUrl, operatorSecret }, path, body) {
  const answer = await fetch(`${operatorUrl}/_operator/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${operatorSecret}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()).data;
}

/** The history of the demo tenant, which reconcile finds complete. */
async function fillBooks(running) {
  const { tenantId } = running;
  await ask(running, `/tenants/${tenantId}/credit`, { amountCents: CREDIT_CENTS, source: 'manual', ref: 'bench' });
  const [{ id: keyId }] = await ask(running, `/tenants/${tenantId}/keys`);
  if (EVENTS > 0) await fill(running, [{ tenantId, keyId }], EVENTS);
}

/** The session of an operator, who also owns the tenant. */
async function makeOperator(browser, running) {
  const { link } = await ask(running, '/operator-invitations', { tenantId: running.tenantId });
  const context = await browser.newContext();
  context.setDefaultTimeout(PAGE_TIMEOUT_MS);
  const page = await context.newPage();
  await page.goto(link);
  await page.getByLabel('Name').fill('Grace Hopper');
  await page.getByLabel('E-mail').fill(`grace-${Date.now()}@example.com`);
  await page.getByLabel('Password').first().fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the account' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}

async function samples(browser, { storageState, running, path, title, late }) {
  const found = [];
  for (const width of WIDTHS)
    for (let time = 0; time < TIMES; time++) {
      const context = await browser.newContext({ storageState, viewport: { width, height: 800 } });
      context.setDefaultTimeout(PAGE_TIMEOUT_MS);
      const page = await context.newPage();
      let answers = 0;
      if (late)
        await page.route('**/console/api/**', async (route) => {
          await sleep(LATE_MS[answers++ % LATE_MS.length]);
          // The page may be closed by now.
          await route.continue().catch(() => {});
        });
      const { origin } = new URL(running.console.url);
      await page.goto(origin + (path.startsWith('/') ? `/console${path}` : `/console/t/${running.tenantId}/${path}`));
      await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor();
      await page.locator('[aria-label="Loading"], .mantine-Skeleton-root').first().waitFor({ state: 'detached' });
      // Since the beginning of the navigation.
      const usableMs = await page.evaluate('performance.now()');
      found.push({ usableMs, shift: await page.evaluate(SHIFT) });
      await context.close();
    }
  return found;
}
