import type { TestDatabase } from '@tollgate/testing';
import type { Page } from 'playwright-core';
import { openPage } from './looks';
import { PASSWORD } from './people';

const HTML = '<img src=x onerror=document.title=1>';
/** Sends a body to the backend as the page does. */
const SEND = async ([path, body]: [string, object]) => {
  const sent = await fetch(`/console/api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await sent.json()) as { id: string; link: string };
};

/** Names that people chose, and a page without a stream. */
export function nameTests(deployed: () => { base: string; page: Page; database: TestDatabase }): void {
  it('HTML in the name of a tenant, a key, a token, a person and a passkey is text on every page', async () => {
    const { base, page, database } = deployed();
    await page.setViewportSize({ width: 1280, height: 800 });
    await openPage(page, { base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
    const send = (path: string, body: object) => page.evaluate(SEND, [path, body] as [string, object]);
    const { id: tenantId } = await send('operator/tenants', { name: HTML });
    await send(`tenants/${tenantId}/keys`, { name: HTML, owner: HTML });
    await send(`tenants/${tenantId}/tokens`, { name: HTML, scopes: ['keys:read'] });
    const email = 'named@example.com';
    const { link } = await send(`tenants/${tenantId}/invitations`, { email, role: 'viewer' });
    const secret = new URL(link).hash.slice(1);
    await send('invitation/accept-as-new', { secret, name: HTML, email, password: PASSWORD });
    // A browser gives passkeys names of its own (passkeys.part.ts), and a provider those of its people.
    await database.query(
      `INSERT INTO console.passkey
         ("id", "name", "publicKey", "userId", "credentialID", "counter", "deviceType", "backedUp")
       SELECT 'named', $1, 'x', id, 'named', 0, 'x', false FROM console."user" WHERE email = 'grace@example.com'`,
      [HTML],
    );
    for (const at of [
      ['/account', 'Account'],
      ['keys', 'Keys'],
      ['settings/tokens', 'Management tokens'],
      ['settings/members', 'Members'],
      ['settings/audit', 'Audit'],
      ['/operator/tenants', 'Tenants'],
      ['/operator/audit', 'Audit'],
    ] as const) {
      await openPage(page, { base, tenantId }, at);
      const shown = page.getByText(HTML, { exact: at[1] !== 'Audit' }).first();
      await shown.waitFor();
      expect([at[0], await page.locator('img').count(), await page.title()]).toEqual([at[0], 0, 'Tollgate']);
    }
    await database.query(`DELETE FROM console.passkey WHERE "id" = 'named'`);
    // Tags have a form of their own.
    const tagged = await send(`tenants/${tenantId}/keys`, { name: 'tagged', tags: [HTML] });
    expect(tagged).toMatchObject({ error: { code: 'invalid_request' } });
  });

  it('a page whose stream is cut asks for its numbers instead', async () => {
    const { base, page } = deployed();
    await openPage(page, { base, tenantId: '' }, ['/operator/fleet', 'Fleet']);
    await page.route(/\/console\/api\/operator\/live\/fleet/, (route) => route.abort());
    const asked = () => page.waitForResponse((answer) => answer.url().endsWith('/console/api/operator/fleet'));
    const first = asked();
    await page.reload();
    await first;
    for (let time = 0; time < 2; time++) expect((await asked()).status()).toBe(200);
    await page.unroute(/\/console\/api\/operator\/live\/fleet/);
  });
}
