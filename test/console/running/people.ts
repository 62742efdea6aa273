import { BrowserSession } from './browser';
import type { Mailbox } from './mailbox';

export const API = '/console/api';
export const PASSWORD = 'correct horse battery staple';
export const NEXT_PASSWORD = 'a password that is new';
/** The name of the session's cookie, over plain HTTP. */
export const SESSION = 'tollgate.session_token';
export const ROLES = ['owner', 'admin', 'billing', 'member', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

/** The secret of a link. */
export const secretOf = (link: string): string => new URL(link).hash.slice(1);

let accepted = 0;
/** A loopback address of its own for each accepted invitation: the console allows 20 of one address in a minute. */
const addressOfItsOwn = () => `127.1.${accepted >> 8}.${accepted++ & 255}`;

/** A person with a new account, signed in. */
export async function join(base: string, link: string, email: string, name = 'Ada'): Promise<BrowserSession> {
  const browser = new BrowserSession(base);
  const account = { secret: secretOf(link), name, email, password: PASSWORD };
  const made = await new BrowserSession(base, addressOfItsOwn()).post(`${API}/invitation/accept-as-new`, account);
  if (made.status !== 201) throw new Error(`the account was not made: ${made.text}`);
  await signIn(browser, email);
  return browser;
}

export async function signIn(browser: BrowserSession, email: string, password = PASSWORD): Promise<void> {
  const answer = await browser.post(`${API}/auth/sign-in/email`, { email, password });
  if (answer.status !== 200) throw new Error(`not signed in: ${answer.text}`);
}

/** The link of an invitation to a tenant, from its mail. */
export async function invite(
  by: BrowserSession,
  { tenantId, email, role, mailbox }: { tenantId: string; email: string; role: Role; mailbox: Mailbox },
): Promise<string> {
  const answer = await by.post(`${API}/tenants/${tenantId}/invitations`, { email, role });
  if (answer.status !== 201) throw new Error(`not invited: ${answer.text}`);
  return mailbox.linkTo(email);
}
