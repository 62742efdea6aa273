import type { Page } from 'playwright-core';
import { PASSWORD } from '../running/people';

/** Creates an account on the page of an invitation. An invitation of an operator leaves the address open. */
export async function acceptInvitation(
  page: Page,
  link: string,
  { name, email }: { name: string; email?: string },
): Promise<void> {
  await page.goto(link);
  await page.getByLabel('Name').fill(name);
  expect(page.url()).not.toContain('#');
  if (email !== undefined) await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the account' }).click();
}

/** The first step of a sign-in, on its page. */
export async function enterPassword(page: Page, email: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}
