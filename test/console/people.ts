import { BrowserSession } from './browser';

export const API = '/console/api';
export const PASSWORD = 'correct horse battery staple';
export const ROLES = ['owner', 'admin', 'billing', 'member', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

/** The secret of a link. */
export const secretOf = (link: string): string => new URL(link).hash.slice(1);

/** A person with a new account, signed in. */
export async function join(base: string, link: string, email: string, name = 'Ada'): Promise<BrowserSession> {
  const browser = new BrowserSession(base);
  const account = { secret: secretOf(link), name, email, password: PASSWORD };
  const made = await browser.post(`${API}/invitation/accept-as-new`, account);
  if (made.status !== 201) throw new Error(`the account was not made: ${made.text}`);
  await signIn(browser, email);
  return browser;
}

export async function signIn(browser: BrowserSession, email: string, password = PASSWORD): Promise<void> {
  const answer = await browser.post(`${API}/auth/sign-in/email`, { email, password });
  if (answer.status !== 200) throw new Error(`not signed in: ${answer.text}`);
}

/** The link of an invitation to a tenant. */
export async function invite(by: BrowserSession, tenantId: string, email: string, role: Role): Promise<string> {
  const answer = await by.post(`${API}/tenants/${tenantId}/invitations`, { email, role });
  if (answer.status !== 201) throw new Error(`not invited: ${answer.text}`);
  return (answer.json as { link: string }).link;
}

/** A new tenant. */
export async function makeTenant(operator: BrowserSession, name: string): Promise<string> {
  const answer = await operator.post(`${API}/operator/tenants`, { name });
  if (answer.status !== 201) throw new Error(`no tenant: ${answer.text}`);
  return (answer.json as { id: string }).id;
}
