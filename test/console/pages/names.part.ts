import { eventually, type TestDatabase } from '@tollgate/testing';
import type { Browser, Page } from 'playwright-core';
import { configurationOf, issueInvoice } from '../books/invoice.fixture';
import { backendOf, openPage } from '../browser/looks';
import { PASSWORD, secretOf } from '../running/people';
import type { RunningConsole } from '../running/running-console';

/** Each name differs, so that a page which shows one does not pass for another. */
const named = (what: string) => `<img src=x onerror=document.title=1>${what}`;
const [TENANT, KEY, OWNER, TOKEN, PERSON, PASSKEY] = ['tenant', 'key', 'owner', 'token', 'person', 'passkey'].map(
  named,
) as [string, string, string, string, string, string];
const EMAIL = 'named@example.com';
const ARRIVES_WITHIN_MS = 60_000;

/** Names that people chose, and a page without a stream. */
export function nameTests(
  deployed: () => { console_: RunningConsole; page: Page; browser: Browser; database: TestDatabase },
): void {
  describe('HTML in a name is text', () => {
    let tenantId: string;
    let entryId: string;
    let invoiceNumber: number;
    /** The link of an invitation that nobody accepts. */
    let openLink: string;
    /** The page of the person, who owns the tenant. */
    let own: Page;
    beforeAll(async () => {
      const { console_, page, browser, database } = deployed();
      await page.setViewportSize({ width: 1280, height: 800 });
      const send = async (path: string, body: object) => (await backendOf(page)(path, body)) as Record<string, string>;
      tenantId = (await send('operator/tenants', { name: TENANT }))['id']!;
      const keyId = (await send(`tenants/${tenantId}/keys`, { name: KEY, owner: OWNER }))['id']!;
      await send(`tenants/${tenantId}/tokens`, { name: TOKEN, scopes: ['keys:read'] });
      const { link } = await send(`tenants/${tenantId}/invitations`, { email: EMAIL, role: 'owner' });
      const account = { secret: secretOf(link!), name: PERSON, email: EMAIL, password: PASSWORD };
      await send('invitation/accept-as-new', account);
      const invited = { email: 'never-named@example.com', role: 'viewer' };
      openLink = (await send(`tenants/${tenantId}/invitations`, invited))['link']!;
      // A browser gives passkeys names of its own (passkeys.part.ts).
      await database.query(
        `INSERT INTO console.passkey
           ("id", "name", "publicKey", "userId", "credentialID", "counter", "deviceType", "backedUp")
         SELECT 'named', $1, 'x', id, 'named', 0, 'x', false FROM console."user" WHERE email = $2`,
        [PASSKEY, EMAIL],
      );
      const booking = { kind: 'topup', amountCents: 1_000, reason: 'for an invoice', ref: 'named-1' };
      const booked = (await backendOf(page)(`operator/tenants/${tenantId}/credit`, booking)) as {
        entry: { id: string };
      };
      entryId = booked.entry.id;
      const budget = `${console_.base}/console/api/tenants/${tenantId}/keys/${keyId}/budget`;
      const origin = console_.base;
      const limited = await page.request.put(budget, { data: { budgetCents: 500 }, headers: { origin } });
      expect(limited.status()).toBe(200);
      const configuration = await configurationOf(page, console_);
      invoiceNumber = (await issueInvoice(database, tenantId, configuration, keyId)).number;
      await eventually(
        async () => {
          const { data } = (await backendOf(page)(`tenants/${tenantId}/requests`)) as { data: { keyId: string }[] };
          expect(data).toMatchObject([{ keyId }]);
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );

      own = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
      await openPage(own, { base: console_.base, tenantId: '' }, ['/sign-in', 'Tollgate']);
      await backendOf(own)('auth/sign-in/email', { email: EMAIL, password: PASSWORD });
    });
    afterAll(() => own?.context().close());

    /** Waits for the name, and expects that the browser took no name of the page for HTML. */
    const isText = async (page: Page, name: string) => {
      await page.locator('main').getByText(name).filter({ visible: true }).first().waitFor();
      expect([await page.locator('img').count(), await page.title()]).toEqual([0, 'Tollgate']);
    };

    it.each([
      ['/account', 'Account', PASSKEY],
      ['keys', 'Keys', KEY],
      ['keys', 'Keys', OWNER],
      ['usage?by=key', 'Usage', KEY],
      ['requests', 'Requests', KEY],
      ['settings/tokens', 'Management tokens', TOKEN],
      ['settings/members', 'Members', PERSON],
      ['settings/budgets', 'Budgets', KEY],
      ['settings/audit', 'Audit', KEY],
    ])('on the page %s of an owner (%s: %s)', async (path, title, name) => {
      await openPage(own, { base: deployed().console_.base, tenantId }, [path, title]);
      await isText(own, name);
    });

    it('on a receipt, on an invoice and on an invitation', async () => {
      const at = { base: deployed().console_.base, tenantId };
      await openPage(own, at, [`credit/${entryId}`, 'Receipt']);
      await isText(own, `${TENANT}, ${tenantId}`);
      await openPage(own, at, [`invoices/${invoiceNumber}`, `Invoice ${invoiceNumber}`]);
      await isText(own, TENANT);
      await openPage(own, at, [`/invitation#${secretOf(openLink)}`, 'Your invitation']);
      await isText(own, TENANT);
    });

    it('in the header, in its menus and above the pages of a tenant that an operator sees', async () => {
      const at = { base: deployed().console_.base, tenantId };
      await openPage(own, at, ['keys', 'Keys']);
      const choice = own.getByRole('banner').getByLabel('Tenant').first();
      expect(await choice.inputValue()).toBe(TENANT);
      await choice.click();
      await own.getByRole('option', { name: TENANT, exact: true }).waitFor();
      await own.keyboard.press('Escape');
      await own.getByRole('banner').getByRole('button', { name: PERSON, exact: true }).click();
      await own.getByRole('menuitem', { name: 'Sign out' }).waitFor();
      expect([await own.locator('img').count(), await own.title()]).toEqual([0, 'Tollgate']);
      await openPage(deployed().page, at, ['keys', 'Keys']);
      await isText(deployed().page, TENANT);
    });

    it.each([
      ['/operator/tenants', 'Tenants', TENANT],
      ['/operator/people', 'People', PERSON],
      ['/operator/audit', 'Audit', KEY],
    ])('on the page %s of an operator (%s: %s)', async (path, title, name) => {
      const { console_, page } = deployed();
      await openPage(page, { base: console_.base, tenantId }, [path, title]);
      await isText(page, name);
    });

    it('and tags have a form of their own', async () => {
      const tagged = await backendOf(own)(`tenants/${tenantId}/keys`, { name: 'tagged', tags: [TENANT] });
      expect(tagged).toMatchObject({ error: { code: 'invalid_request' } });
    });
  });

  it('a page whose stream is cut asks for its numbers instead', async () => {
    const { console_, page } = deployed();
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/fleet', 'Fleet']);
    await page.route(/\/console\/api\/operator\/live\/fleet/, (route) => route.abort());
    const asked = () => page.waitForResponse((answer) => answer.url().endsWith('/console/api/operator/fleet'));
    const first = asked();
    await page.reload();
    await first;
    for (let time = 0; time < 2; time++) expect((await asked()).status()).toBe(200);
    await page.unroute(/\/console\/api\/operator\/live\/fleet/);
  });

  it('a page whose numbers cannot be renewed says so, and from when they are, until they are renewed', async () => {
    const { console_, page } = deployed();
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/fleet', 'Fleet']);
    await page.route(/\/console\/api\/operator\/live\/fleet/, (route) => route.abort());
    await page.reload();
    const settled = page.locator('[data-figure="Settled"]');
    await settled.waitFor();
    const warning = page.getByText(/^What is below may be out of date\. It is from \d{4}-\d\d-\d\d .* UTC\.$/);
    expect(await warning.count()).toBe(0);
    const error = { code: 'unavailable', message: 'A service does not answer.', requestId: 'one' };
    await page.route(/\/console\/api\/operator\/fleet$/, (route) => route.fulfill({ status: 503, json: { error } }));
    await warning.waitFor();
    expect(await page.getByRole('alert').textContent()).toContain(error.message);
    expect(await settled.isVisible()).toBe(true);
    await page.unroute(/\/console\/api\/operator\/fleet$/);
    await warning.waitFor({ state: 'detached' });
    expect([await page.getByRole('alert').count(), await settled.isVisible()]).toEqual([0, true]);
    await page.unroute(/\/console\/api\/operator\/live\/fleet/);
  });
}
