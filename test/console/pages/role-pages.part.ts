import type { Page } from 'playwright-core';
import type { InvitationCreated } from '../../../apps/console/src/api/answers';
import {
  grantsOf,
  mayDo,
  type Role,
  TENANT_ACTIONS,
  TENANT_ROLES,
  type TenantAction,
} from '../../../apps/console/src/access/roles';
import { enterPassword } from '../browser/entering';
import { openPage } from '../browser/looks';
import { PASSWORD, secretOf } from '../running/people';
import type { InBrowsers } from '../running/deployed';

type Control = readonly [name: string, action: TenantAction];
/** The pages of the navigation, each with the action that shows it, and its controls with theirs. */
const PAGES: readonly (readonly [label: string, action: TenantAction, controls: readonly Control[]])[] = [
  ['Overview', 'usage.read', []],
  ['Usage', 'usage.read', []],
  ['Requests', 'requests.read', []],
  [
    'Keys',
    'keys.read',
    [
      ['Create a key', 'keys.write'],
      ['Change shared', 'keys.write'],
      ['Rotate shared', 'keys.write'],
      ['Revoke shared', 'keys.write'],
    ],
  ],
  ['Credit', 'credit.read', []],
  ['Models', 'models.read', [['Run', 'models.try']]],
  [
    'Management tokens',
    'tokens.read',
    [
      ['Create a token', 'tokens.write'],
      ['Revoke automation', 'tokens.write'],
    ],
  ],
  [
    'Members',
    'members.read',
    [
      ['Invite a person', 'members.write'],
      ['Remove viewer', 'members.write'],
      ['Make a password link for viewer', 'members.recover'],
      ['Withdraw the invitation of open@example.com', 'members.write'],
    ],
  ],
  ['Budgets', 'budgets.read', [['Change: Budget of all keys together', 'budgets.write']]],
  ['Sessions and passkeys', 'tenant.read', [['Add a passkey', 'tenant.read']]],
  ['Audit', 'audit.read', []],
];
/** The titles of pages whose title is not their label. */
const TITLES: Record<string, string> = { 'Sessions and passkeys': 'Account' };
const OPERATOR_PAGES = ['Fleet', 'Tenants', 'People', 'Invoices', 'Plans and prices', 'Audit'];
const FORBIDDEN = 403;

/** What each role sees is what it may do. */
export function rolePageTests(deployed: () => InBrowsers): void {
  let tenantId: string;
  // Every person of the tests calls from one address.
  beforeEach(() => deployed().forgetTries());
  const emailOf = (role: Role) => (role === 'operator' ? 'grace@example.com' : `role-${role}@example.com`);
  beforeAll(async () => {
    const { call } = deployed();
    tenantId = ((await call('operator/tenants', { name: 'Roles' })) as { id: string }).id;
    const invite = async (email: string, role: Role) =>
      ((await call(`tenants/${tenantId}/invitations`, { email, role })) as InvitationCreated).link!;
    for (const role of TENANT_ROLES) {
      const secret = secretOf(await invite(emailOf(role), role));
      await call('invitation/accept-as-new', { secret, name: role, email: emailOf(role), password: PASSWORD });
    }
    await invite('open@example.com', 'viewer');
    await call(`tenants/${tenantId}/keys`, { name: 'shared' });
    await call(`tenants/${tenantId}/tokens`, { name: 'automation', scopes: ['keys:read'] });
  });

  async function roleChoices(page: Page, role: Role): Promise<void> {
    const options = async (name: string, exact: boolean) => {
      await page.getByRole('combobox', { name, exact }).click();
      const texts = await page.getByRole('option').allTextContents();
      await page.keyboard.press('Escape');
      await page.getByRole('option').first().waitFor({ state: 'detached' });
      return texts.map((text) => text.split(' ')[0]);
    };
    expect(await options('Role of viewer', true)).toEqual(grantsOf(role));
    // Only an owner changes owners.
    for (const control of [
      page.getByRole('combobox', { name: 'Role of owner' }),
      page.getByRole('button', { name: 'Remove owner' }),
    ])
      expect([role, await control.count()]).toEqual([role, grantsOf(role).includes('owner') ? 1 : 0]);
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByRole('dialog').getByRole('combobox', { name: 'Role' }).click();
    const offered = await page.getByRole('option', { name: ' – ' }).allTextContents();
    expect(offered.map((text) => text.split(' ')[0])).toEqual(grantsOf(role));
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  /** The table has one row for each action, in the order of the one in code. */
  async function roleTable(page: Page): Promise<void> {
    const rows = await page.getByRole('region', { name: 'What each role may do' }).getByRole('row').allInnerTexts();
    const [titles, ...cells] = rows.map((row) => row.split('\t').map((cell) => cell.trim()));
    expect(titles!.slice(1)).toEqual([...TENANT_ROLES]);
    const actions = Object.keys(TENANT_ACTIONS) as TenantAction[];
    expect(cells.map(([, ...may]) => may)).toEqual(
      actions.map((action) => TENANT_ROLES.map((of) => (mayDo(of, action) ? 'yes' : '–'))),
    );
  }

  it.each([...TENANT_ROLES, 'operator'] as const)(
    'the role %s sees every page and control that it may use, and no other, and is refused nothing',
    async (role) => {
      const { console_, browser } = deployed();
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
      try {
        const page = await context.newPage();
        const refused: string[] = [];
        page.on('response', (answer) => {
          if (answer.status() === FORBIDDEN) refused.push(answer.url());
        });
        await page.goto(`${console_.base}/console/sign-in`);
        await enterPassword(page, emailOf(role));
        await page.getByRole('navigation').first().waitFor();
        await openPage(page, { base: console_.base, tenantId }, ['keys', 'Keys']);
        const isOperator = role === 'operator';
        const own = PAGES.filter(([, action]) => mayDo(role, action));
        const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
        expect(await links.allTextContents()).toEqual([
          ...own.map(([label]) => label),
          ...(isOperator ? OPERATOR_PAGES : []),
        ]);
        for (const [label, , controls] of own) {
          await links
            .filter({ hasText: new RegExp(`^${label}$`) })
            .first()
            .click();
          await page.getByRole('heading', { name: TITLES[label] ?? label, exact: true, level: 1 }).waitFor();
          await page.locator('[aria-label="Loading"]').first().waitFor({ state: 'detached' });
          for (const [name, action] of controls) {
            const shown = await page.getByRole('button', { name, exact: true }).count();
            expect([role, name, shown > 0]).toEqual([role, name, mayDo(role, action)]);
          }
          if (label === 'Members') {
            await roleTable(page);
            await roleChoices(page, role);
          }
          expect([label, await page.getByRole('alert').filter({ hasNotText: 'as an operator' }).count()]).toEqual([
            ...[label, 0],
          ]);
        }
        // The menu scrolls to those that are below the window.
        await links.last().click();
        const last = isOperator ? OPERATOR_PAGES.at(-1)! : own.at(-1)![0];
        await page.getByRole('heading', { name: TITLES[last] ?? last, exact: true, level: 1 }).waitFor();
        expect(refused).toEqual([]);
      } finally {
        await context.close();
      }
    },
  );
}
