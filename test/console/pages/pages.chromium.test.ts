import { newId } from '@tollgate/contracts';
import { eventually, onceServed } from '@tollgate/testing';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import type { Configuration } from '../../../apps/console/src/api/answers';
import { brokenPageTests } from './broken-page.part';
import { chartTests } from './chart.part';
import { confirmTests } from './confirm.part';
import { STEP_TIMEOUT_MS, useConsolePage } from '../browser/console-page';
import { earlyTests } from './early.part';
import { emptyTests } from './empty.part';
import { heldTests } from './held.part';
import { issueInvoice } from '../books/invoice.fixture';
import { clickedPageTests, keyPageTests } from './key-pages.part';
import { lookingAt } from '../browser/looking';
import { acceptInvitation, enterPassword } from '../browser/entering';
import { backendOf, PAGES } from '../browser/looks';
import { manyPeopleTests } from './many-people.part';
import { manyTests } from './many.part';
import { nameTests } from './names.part';
import { numberTests } from './numbers.part';
import { openedTests } from './opened.part';
import { passkeyTests, passwordTests, totpTests } from './passkeys.part';
import { rangeTests } from './ranges.part';
import { receiptPageTests } from './receipt-pages.part';
import { recoveryPageTests } from './recovery-pages.part';
import { requestSheetTests } from './request-sheet.part';
import type { RunningConsole } from '../running/running-console';
import { seedUsage } from '../books/seed.fixture';

/** It is refused within a second of the answer: revoked.part.ts. Here the page has the answer, and no test sees it. */
const REVOKED_WITHIN_MS = 60_000;

const { database, chromium, failures, opened } = useConsolePage({
  TOLLGATE_DEMO: 'true',
  // Nobody answers there, so people sign in by password and passkey.
  TOLLGATE_OIDC_ISSUER: 'http://127.0.0.1:1',
  TOLLGATE_OIDC_CLIENT_ID: 'tollgate',
  TOLLGATE_OIDC_CLIENT_SECRET: 'never-asked-for',
});
let console_: RunningConsole;
let page: Page;
const { violations, picture, lookAt } = lookingAt(() => page);
/** Served before the first page is opened, so that it has a chart. */
let requestId: string;
/** What the request cost, as the pages show it. */
let cost: string;
/** The addresses of the scripts that were loaded. */
const scripts = new Set<string>();
const MAX_FIRST_LOAD_BYTES = 250 * 1024;

beforeAll(async () => {
  ({ console_, page } = opened());
  page.on('request', (request) => {
    if (request.resourceType() === 'script') scripts.add(request.url());
  });
  const answer = await onceServed(() => chat('sim-small'));
  expect(answer.status).toBe(200);
  requestId = answer.headers.get('x-request-id')!;
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
  // The prices of sim-small in nanos per token.
  cost = `0.${String(usage.prompt_tokens * 150 + usage.completion_tokens * 600).padStart(9, '0')}`.replace(/0+$/, '');
});

const chat = (model: string) =>
  fetch(`${console_.inferenceUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${console_.demo!.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });

const tokens = () => `${console_.base}/console/t/${console_.demo!.tenantId}/settings/tokens`;

async function call(path: string, token: string): Promise<{ status: number; body: { error?: { code: string } } }> {
  const answer = await fetch(console_.managementUrl + path, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, body: (await answer.json()) as { error?: { code: string } } };
}

async function createToken(name: string): Promise<string> {
  await page.getByRole('button', { name: 'Create a token' }).click();
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('tokens:read', { exact: false }).check();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  const token = (await page.getByLabel('Token', { exact: true }).textContent())!.trim();
  await page.getByRole('button', { name: 'Done' }).click();
  return token;
}

it('the first operator creates an account by the printed link, and the link leaves the address line', async () => {
  await acceptInvitation(page, console_.operatorLink!, { name: 'Grace Hopper', email: 'grace@example.com' });
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
});

it('all scripts of the first page, with its numbers and its chart, are at most 250 KB', async () => {
  await page.locator('[data-figure="Balance"]').waitFor();
  await page.locator('rect[data-bar]').first().waitFor();
  const sizeOf = async (url: string) => gzipSync(Buffer.from(await (await fetch(url)).arrayBuffer())).length;
  const bytes = await Promise.all([...scripts].map(sizeOf));
  expect(bytes.length).toBeGreaterThan(3);
  expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES);
});

it('a token is created, used, replaced and revoked as the contract says', async () => {
  await page.goto(tokens());
  const first = await createToken('first');
  expect(await page.content()).not.toContain(first);
  const row = page.getByRole('row', { name: /^first/ });
  // It was never used, and never expires.
  expect(await row.getByText('never').count()).toBe(2);

  expect((await call('/tokens', first)).status).toBe(200);
  await eventually(async () => expect(await row.getByText('never').count()).toBe(1), { timeoutMs: STEP_TIMEOUT_MS });

  const second = await createToken('second');
  expect((await call('/tokens', second)).status).toBe(200);
  await page.getByRole('button', { name: 'Revoke first' }).click();
  await page.getByLabel('Type first to confirm').fill('first');
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await eventually(
    async () => {
      const { status, body } = await call('/tokens', first);
      expect([status, body.error?.code]).toEqual([401, 'token_revoked']);
    },
    { timeoutMs: REVOKED_WITHIN_MS },
  );
  expect((await call('/tokens', second)).status).toBe(200);
  await row.getByText('revoked').waitFor();
});

describe('pages', () => {
  beforeAll(async () => {
    expect((await onceServed(() => chat('none'))).status).toBe(404);
  });

  it('a request and its cost are shown to the last digit, with its way into the books, and so are errors', async () => {
    const tenant = `${console_.base}/console/t/${console_.demo!.tenantId}`;
    await page.goto(`${tenant}/overview`);
    await page.locator('[data-figure="Spend, 30 days"]', { hasText: cost }).waitFor();
    await page.getByRole('row', { name: /^model_not_found 1 / }).waitFor();
    await page.goto(`${tenant}/usage`);
    await page.getByRole('row', { name: new RegExp(`sim-small .* ${cost}`) }).waitFor();
    await page.goto(`${tenant}/requests?model=sim-small&outcome=complete`);
    await page.getByRole('button', { name: `Show the books of ${requestId}` }).click();
    const sheet = page.getByRole('dialog', { name: 'Request' });
    await sheet.getByText('Charged', { exact: true }).waitFor();
    // Its own id, and that of its charge.
    expect(await sheet.getByText(requestId, { exact: true }).count()).toBe(2);
    const path = `requests?request=${requestId}`;
    expect(page.url()).toContain(`request=${requestId}`);
    expect(await sheet.getByText(cost).count()).toBe(2);
    await sheet.getByText('demo', { exact: true }).waitFor();
    await sheet.getByText('complete', { exact: true }).waitFor();
    await sheet.getByText(/^\d+ input × 0\.15 \/ 1,000,000$/).waitFor();
    await sheet.getByText(/^\d+ output × 0\.6 ?\/ 1,000,000$|^\d+ output × 0\.60 \/ 1,000,000$/).waitFor();
    await page.goto(`${tenant}/requests`);
    await page.getByLabel('Request id').fill('my own id');
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByText('An id has at most 64 letters').waitFor();
    await page.getByLabel('Request id').fill(requestId);
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await sheet.getByText('Charged', { exact: true }).waitFor();
    await lookAt({ base: console_.base, tenantId: console_.demo!.tenantId }, [path, 'Requests'], {
      // The picture has a request that is on an invoice.
      name: null,
      isShown: () => sheet.getByText('Charged', { exact: true }).waitFor(),
    });
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${tenant}/requests?outcome=expired`);
    await page.getByText('No request matches these filters.').waitFor();
  });

  it('the pages have use to show', () => seedUsage({ console_, page, database }));

  it.each(PAGES)(
    '%s has no violation of axe in light, dark and on a phone, does not move, and is reached by the keyboard',
    (path, title) => lookAt({ base: console_.base, tenantId: console_.demo!.tenantId }, [path, title]),
  );

  chartTests(() => ({ console_, page, call: backendOf(page), tenantId: console_.demo!.tenantId }));

  keyPageTests(() => ({ base: console_.base, tenantId: console_.demo!.tenantId, page, violations, picture }));

  earlyTests(() => ({ base: console_.base, tenantId: console_.demo!.tenantId, page }));

  requestSheetTests(() => ({ console_, page, call: backendOf(page) }));

  // Before the test of the invoice, which closes a month that is not over.
  numberTests(() => ({ console_, page, database }));

  it('a tenant that does not exist has no pages, and the page says so', async () => {
    await page.goto(`${console_.base}/console/t/${newId('ten')}/overview`);
    await page.getByRole('heading', { name: 'Tenant', level: 1 }).waitFor();
    expect(await page.getByRole('alert').textContent()).toMatch(/No such tenant\..*Request id/);
  });

  receiptPageTests(() => ({ console_, page, database, lookAt }));

  manyPeopleTests(() => ({ console_, page, call: backendOf(page), database }));
  manyTests(() => ({ console_, page, call: backendOf(page) }));

  rangeTests(() => ({ console_, page, call: backendOf(page) }));

  heldTests(() => ({ console_, page, call: backendOf(page) }));

  confirmTests(() => ({ console_, page, call: backendOf(page), violations }));

  clickedPageTests(() => ({ base: console_.base, tenantId: console_.demo!.tenantId, page, lookAt }));

  recoveryPageTests(() => ({ console_, page, browser: chromium.browser, call: backendOf(page) }));

  openedTests(() => ({ console_, browser: chromium.browser, call: backendOf(page) }));

  brokenPageTests(() => ({ console_, page }));

  emptyTests(() => ({ console_, page, call: backendOf(page) }));

  nameTests(() => ({ console_, page, browser: chromium.browser, database }));

  it('an invoice adds up on the screen, and prints without the frame around it', async () => {
    const call = (path: string, body?: unknown) => backendOf(page)(`operator/${path}`, body);
    const { id } = (await call('tenants', { name: 'Invoiced' })) as { id: string };
    const booking = { kind: 'topup', amountCents: 1_000, reason: 'for the invoice', ref: 'invoiced-1' };
    await call(`tenants/${id}/credit`, booking);
    const key = (await backendOf(page)(`tenants/${id}/keys`, { name: 'chat-app' })) as { id: string };
    const { number } = await issueInvoice(database, id, (await call('configuration')) as Configuration, key.id);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${console_.base}/console/operator/invoices`);
    await page.getByRole('row', { name: `${number} Invoiced ${id} `, exact: false }).waitFor();
    await page.getByRole('link', { name: String(number), exact: true }).click();
    await page.getByRole('heading', { name: `Invoice ${number}`, level: 1 }).waitFor();
    // 10 and 200,000 tokens of sim-small: 1,500 + 120,000,000 nanos, of which 12 whole cents are debited.
    for (const [label, amount] of [
      ['Usage', '0.1200015 USD'],
      ['Carried between months, and late charges', '−0.0000015 USD'],
      ['Paid from credit', '0.12 USD'],
    ] as const)
      await page.getByRole('row', { name: `${label} ${amount}`, exact: true }).waitFor();
    await lookAt({ base: console_.base, tenantId: id }, [`invoices/${number}`, `Invoice ${number}`], {
      name: 'invoice',
    });
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('navigation').first().isVisible()).toBe(false);
    expect(await page.getByRole('button', { name: 'Print or save as PDF' }).isVisible()).toBe(false);
    await page.emulateMedia({ media: 'screen' });
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${console_.base}/console/t/${id}/requests`);
    await page.getByRole('button', { name: /^Show the books of / }).click();
    const toInvoice = page
      .getByRole('dialog', { name: 'Request' })
      .getByRole('link', { name: `Invoice ${number}`, exact: true });
    await toInvoice.waitFor();
    await lookAt({ base: console_.base, tenantId: id }, [`requests${new URL(page.url()).search}`, 'Requests'], {
      name: 'request',
      isShown: () => toInvoice.waitFor(),
    });
    await toInvoice.click();
    await page.getByRole('heading', { name: `Invoice ${number}`, level: 1 }).waitFor();
  });

  it('the storage of the browser has no secret that a page has shown', async () => {
    const stored = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
    expect(stored).not.toMatch(/sk-svc-|fma_|otpauth|password|#/);
    expect(await page.evaluate<string>('document.cookie')).toBe('');
  });

  it('nothing broke the policy of the pages, and no script failed', () => {
    expect(failures).toEqual([]);
  });

  it('a person signs out, and signs in again by password', async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(tokens());
    await page.getByRole('button', { name: 'Grace Hopper' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    const warned = console_.process.stderr.split('\n').filter((line) => line.includes('TOLLGATE_OIDC_ISSUER'));
    expect(warned).toHaveLength(1);
    expect(await page.getByRole('button', { name: 'Single sign-on' }).count()).toBe(0);
    await enterPassword(page, 'grace@example.com');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  totpTests(() => ({ base: console_.base, page, violations, picture }));

  passwordTests(() => ({ base: console_.base, page, person: 'Grace Hopper', email: 'grace@example.com' }));

  passkeyTests(() => ({ base: console_.base, page, person: 'Grace Hopper', email: 'grace@example.com' }));
});
