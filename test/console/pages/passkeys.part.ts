import type { Locator, Page } from 'playwright-core';
import { BrowserSession } from '../running/browser';
import { NEXT_PASSWORD, PASSWORD, SESSION, signIn } from '../running/people';
import { totpOf } from '../running/totp';

/**
 * Signs in with a passkey that does not check its person, whatever the console asked for. `flags`: those of WebAuthn,
 * of which the first bit is the touch, and the third that the person was checked.
 */
const TOUCH_ONLY = `(async () => {
  const asked = await (await fetch('/console/api/auth/passkey/generate-authenticate-options')).json();
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON({ ...asked, userVerification: 'discouraged' });
  const response = await navigator.credentials.get({ publicKey });
  const answer = await fetch('/console/api/auth/passkey/verify-authentication', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ response: response.toJSON() }),
  });
  return { status: answer.status, flags: new Uint8Array(response.response.authenticatorData)[32] & 0b101 };
})()`;

/**
 * Signs in with a passkey, by an authenticator that Chromium plays. The person is signed in before and after, and has
 * the password of `passwordTests`.
 */
export function passkeyTests(deployed: () => { base: string; page: Page; person: string; email: string }): void {
  it('a passkey is added, signs its person in without a password, and is removed again', async () => {
    const { base, page, person, email } = deployed();
    const devices = await page.context().newCDPSession(page);
    await devices.send('WebAuthn.enable');
    const { authenticatorId } = await devices.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
        ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
      },
    });
    await page.goto(`${base}/console/account`);
    for (const name of ['lap\u0007top', 'lap\u202etop', '\u200b']) {
      await page.getByLabel('Name of the new passkey').fill(name);
      const answered = page.waitForResponse((answer) => answer.url().endsWith('/passkey/verify-registration'));
      await page.getByRole('button', { name: 'Add a passkey' }).click();
      const answer = await answered;
      const code = ((await answer.json()) as { error: { code: string } }).error.code;
      expect([name, answer.status(), code]).toEqual([name, 400, 'invalid_name']);
      await page.getByRole('alert').waitFor();
    }
    // The device has made them all the same.
    await devices.send('WebAuthn.clearCredentials', { authenticatorId });
    await page.getByText('You have no passkey.').waitFor();
    await page.getByLabel('Name of the new passkey').fill('laptop');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    const row = page.getByRole('region', { name: 'Passkeys' }).getByRole('row', { name: /^laptop/ });
    await row.waitFor();

    await page.getByRole('button', { name: person }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    // A stolen key is touched by a person whom it does not know.
    expect(await page.evaluate<{ status: number; flags: number }>(TOUCH_ONLY)).toEqual({ status: 400, flags: 0b001 });
    expect((await page.request.get(`${base}/console/api/me`)).status()).toBe(401);
    await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByRole('alert').waitFor();
    await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    // A session that somebody else knows is in the browser.
    const planter = new BrowserSession(base);
    await signIn(planter, email, NEXT_PASSWORD);
    const planted = planter.cookies.get(SESSION)!;
    await page.context().addCookies([{ name: SESSION, value: planted, url: base }]);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const made = (await page.context().cookies(base)).filter(({ name }) => name === SESSION);
    expect(made).toHaveLength(1);
    // Behind the point is only the signature.
    expect(made[0]!.value.split('.')[0]).not.toBe(planted.split('.')[0]);

    await page.goto(`${base}/console/account`);
    await row.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('You have no passkey.').waitFor();
    const log = await page.request.get(`${base}/console/api/operator/audit?author=${email}&limit=2`);
    expect(((await log.json()) as { data: object[] }).data).toMatchObject([
      { action: 'passkey.remove', before: { passkey: 'laptop' }, by: { kind: 'person', name: email } },
      { action: 'passkey.add', after: { passkey: 'laptop' }, by: { kind: 'person', name: email } },
    ]);
    await page.getByRole('button', { name: person }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByRole('alert').waitFor();
    expect((await page.request.get(`${base}/console/api/me`)).status()).toBe(401);
    await devices.send('WebAuthn.disable');
  });
}

/** Changes the password on the page of the account. The person is signed in before and after. */
export function passwordTests(deployed: () => { base: string; page: Page; person: string; email: string }): void {
  it('a person changes the password, and signs in with the new one only', async () => {
    const { base, page, person, email } = deployed();
    await page.goto(`${base}/console/account`);
    await page.getByLabel('Current password').fill('not the password');
    await page.getByLabel('New password').fill(NEXT_PASSWORD);
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Current password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByText('The password is changed.').waitFor();

    await page.getByRole('button', { name: person }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Password', { exact: false }).first().fill(NEXT_PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
}

/** Sets TOTP up on the page of the account, and turns it off again. The person is signed in before and after. */
export function totpTests(
  deployed: () => {
    base: string;
    page: Page;
    violations: () => Promise<string[]>;
    picture: (path: string, look: string, secrets: Locator[]) => Promise<void>;
  },
): void {
  it('an authenticator is set up by a QR code or an address, and turned off again', async () => {
    const { base, page, violations, picture } = deployed();
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${base}/console/account`);
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Set it up' }).click();
    const code = page.getByRole('img', { name: 'QR code of the address' });
    await code.waitFor();
    // Its modules: one path of dark squares for 100 and more characters.
    expect((await code.locator('path').last().getAttribute('d'))!.length).toBeGreaterThan(1_000);
    expect(await violations()).toEqual([]);
    const shown = page.getByLabel('Address for the authenticator');
    await picture('account-totp', 'light', [code, shown, page.getByLabel('Backup codes')]);
    const address = (await shown.textContent())!.trim();
    await page.getByLabel('Code of the authenticator').fill(totpOf(address));
    await page.getByRole('button', { name: 'Turn it on' }).click();
    await page.getByText('A code is asked for beside the password.').waitFor();
    expect(await page.getByLabel('Your password').inputValue()).toBe('');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Turn it off' }).click();
    await page.getByText('Only the password is asked for.').waitFor();
    expect([await code.count(), await page.getByLabel('Backup codes').count()]).toEqual([0, 0]);
    expect(await page.getByLabel('Your password').inputValue()).toBe('');
  });
}
