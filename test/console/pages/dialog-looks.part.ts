import { type Difference, newId, type ReconcileReport } from '@tollgate/contracts';
import { eventually, type TestDatabase } from '@tollgate/testing';
import { openPage } from '../browser/looks';
import type { OnPageWithAxe } from '../running/deployed';

const MOVES_WITHIN_MS = 60_000;
/** Dialogs by the buttons that open them. */
const DIALOGS = [
  ['keys', 'Keys', 'Create a key'],
  ['keys', 'Keys', 'Rotate looked at'],
  ['keys', 'Keys', 'Revoke looked at'],
  ['settings/tokens', 'Management tokens', 'Create a token'],
  ['settings/budgets', 'Budgets', 'Change: Budget of all keys together'],
] as const;

/** What opens by a click and is no page: axe looks at it, too. */
export function dialogLookTests(deployed: () => OnPageWithAxe & { database: Pick<TestDatabase, 'query'> }): void {
  let tenantId: string;
  beforeAll(async () => {
    const { call } = deployed();
    tenantId = ((await call('operator/tenants', { name: 'Looked at' })) as { id: string }).id;
    await call(`tenants/${tenantId}/keys`, { name: 'looked at' });
  });

  it.each(DIALOGS)('on %s (%s), the dialog of "%s" has no violation of axe', async (path, title, button) => {
    const { console_, page, violations } = deployed();
    await openPage(page, { base: console_.base, tenantId }, [path, title]);
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('dialog').waitFor();
    expect(await violations()).toEqual([]);
  });

  it('the report of a reconciliation has no violation of axe', async () => {
    const { console_, page, violations } = deployed();
    await openPage(page, { base: console_.base, tenantId }, ['/operator/fleet', 'Fleet']);
    await page.getByRole('button', { name: 'Reconcile now' }).click();
    await page.getByRole('row', { name: /^Tenants \d/ }).waitFor();
    expect(await violations()).toEqual([]);
  });

  it('a later run replaces the own one on the page, which says if not all its differences are listed', async () => {
    const { page, database, violations } = deployed();
    const badge = page.getByText('the books agree');
    await badge.waitFor();
    const difference: Difference = { check: 'balance', tenantId, expected: '100', actual: '200', ids: [] };
    const report: Partial<ReconcileReport> = {
      ...{ ok: false, checkedAt: new Date().toISOString(), tenants: 1, events: 2, pendingHolds: 0, settledHolds: 0 },
      ...{ eventsNanos: '0', chargesNanos: '0', debitsNanos: '0', carriedNanos: '0' },
      ...{ differenceCount: 1_234, truncated: true, differences: [difference] },
    };
    await database.query(
      `INSERT INTO billing.reconcile_run (id, state, progress, report)
       VALUES ($1, 'done', '{"events": 2, "tenants": 1, "differenceCount": 1234}', $2)`,
      [newId('rec'), JSON.stringify(report)],
    );
    await page.getByText('at least 1,234 differences').waitFor();
    expect(await badge.count()).toBe(0);
    await page.getByText('Only the first of them are listed: 1.').waitFor();
    expect(await violations()).toEqual([]);
    await page.getByRole('button', { name: 'Reconcile now' }).click();
    await badge.waitFor();
  });

  it('the menu of a phone has no violation of axe, leads to a page, and closes then', async () => {
    const { console_, page, violations } = deployed();
    await page.setViewportSize({ width: 375, height: 800 });
    await openPage(page, { base: console_.base, tenantId }, ['keys', 'Keys']);
    const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Usage' });
    const isOnScreen = async () => (await link.boundingBox())!.x >= 0;
    // Closed, the keyboard does not get there either.
    expect(await link.count()).toBe(0);
    await page.getByRole('button', { name: 'Navigation' }).click();
    await eventually(async () => expect(await isOnScreen()).toBe(true), { timeoutMs: MOVES_WITHIN_MS });
    expect(await violations()).toEqual([]);
    await link.click();
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
    await link.waitFor({ state: 'hidden' });
    await page.setViewportSize({ width: 1280, height: 800 });
  });
}
