import type { InvitationCreated, KeyRow, MemberList, TenantRow } from '../../../apps/console/src/api/answers';
import { openPage } from '../browser/looks';
import { PASSWORD, secretOf } from '../running/people';
import type { OnPageWithAxe } from '../running/deployed';

/** Changes that others notice at once. */
export function confirmTests(deployed: () => OnPageWithAxe): void {
  it('a tenant is suspended only after its name was typed, and is resumed by one click', async () => {
    const { console_, page, call, violations } = deployed();
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
    const { id } = (await call('operator/tenants', { name: 'Paused' })) as { id: string };
    const status = async () => ((await call(`operator/tenants/${id}`)) as TenantRow).status;
    await page.getByLabel('Search by name or id').fill(id);
    await page.getByRole('button', { name: 'Suspend Paused' }).click();
    const dialog = page.getByRole('dialog', { name: 'Suspend the tenant Paused' });
    const suspend = dialog.getByRole('button', { name: 'Suspend', exact: true });
    expect(await suspend.isDisabled()).toBe(true);
    expect(await violations()).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await status()).toBe('active');
    await page.getByRole('button', { name: 'Suspend Paused' }).click();
    await dialog.getByLabel('Type Paused to confirm').fill('Paused');
    await suspend.click();
    await page.getByRole('button', { name: 'Resume Paused' }).click();
    await page.getByRole('button', { name: 'Suspend Paused' }).waitFor();
    expect(await status()).toBe('active');
  });

  it('an operator erases a person only with its address and the own password', async () => {
    const { console_, page, call, violations } = deployed();
    const { id } = (await call('operator/tenants', { name: 'Erasing' })) as { id: string };
    const email = 'erased-on-a-page@example.com';
    const { link } = (await call(`tenants/${id}/invitations`, { email, role: 'viewer' })) as InvitationCreated;
    await call('invitation/accept-as-new', { secret: secretOf(link!), name: 'Barbara', email, password: PASSWORD });
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/people', 'People']);
    const found = page.waitForResponse((answer) => answer.url().includes('/operator/people?search='));
    await page.getByLabel('Search by name or e-mail').fill(email);
    await found;
    await page.getByRole('button', { name: 'Erase Barbara' }).click();
    const dialog = page.getByRole('dialog', { name: 'Erase the account of Barbara' });
    const erase = dialog.getByRole('button', { name: 'Erase', exact: true });
    await dialog.getByLabel('Your password').first().fill('not my password');
    expect(await erase.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${email} to confirm`).fill(email);
    await erase.click();
    await dialog.getByText('The password is wrong.').waitFor();
    expect(await violations()).toEqual([]);
    await dialog.getByLabel('Your password').first().fill(PASSWORD);
    await erase.click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('There is no such person.').waitFor();
  });

  it('the role of a member changes, and a member is removed, only after a confirmation', async () => {
    const { console_, page, call } = deployed();
    const { id } = (await call('operator/tenants', { name: 'Members' })) as { id: string };
    const email = 'confirmed@example.com';
    const { link } = (await call(`tenants/${id}/invitations`, { email, role: 'viewer' })) as InvitationCreated;
    await call('invitation/accept-as-new', { secret: secretOf(link!), name: 'Edsger', email, password: PASSWORD });
    const members = async () =>
      ((await call(`tenants/${id}/members`)) as MemberList).data.map(({ name, role }) => [name, role]);
    await openPage(page, { base: console_.base, tenantId: id }, ['settings/members', 'Members']);
    const choose = async () => {
      await page.getByLabel('Role of Edsger').first().click();
      await page.getByRole('option', { name: 'admin' }).click();
    };
    const dialog = page.getByRole('dialog', { name: 'Change the role of Edsger' });
    await choose();
    await dialog.getByText('From viewer to admin.').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await members()).toEqual([['Edsger', 'viewer']]);
    await choose();
    await dialog.getByRole('button', { name: 'Change the role' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await members()).toEqual([['Edsger', 'admin']]);
    await page.getByRole('button', { name: 'Remove Edsger' }).click();
    await page.getByLabel('Type Edsger to confirm').fill('Edsger');
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('button', { name: 'Remove Edsger' }).waitFor({ state: 'detached' });
    expect(await members()).toEqual([]);
  });

  it('a dialog stays when its row leaves the list', async () => {
    const { console_, page, call } = deployed();
    const at = { base: console_.base, tenantId: '' };
    const { id } = (await call('operator/tenants', { name: 'Leaving' })) as { id: string };
    const email = 'leaving@example.com';
    const { link } = (await call(`tenants/${id}/invitations`, { email, role: 'viewer' })) as InvitationCreated;
    await call('invitation/accept-as-new', { secret: secretOf(link!), name: 'Radia', email, password: PASSWORD });
    await openPage(page, at, ['/operator/people', 'People']);
    const search = page.getByLabel('Search by name or e-mail');
    const nobody = page.getByText('There is no such person.');
    await search.fill('nobody at all');
    await nobody.waitFor();
    for (const button of ['Erase Radia', 'Make a password link for Radia']) {
      await search.fill(email);
      await page.getByRole('button', { name: button }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Your password').first().fill('half a pass');
      // As if its answer had been late.
      await search.fill('nobody at all');
      await nobody.waitFor();
      expect(await dialog.getByLabel('Your password').first().inputValue()).toBe('half a pass');
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    }

    const key = (await call(`tenants/${id}/keys`, { name: 'leaving' })) as KeyRow;
    await openPage(page, { ...at, tenantId: id }, ['keys', 'Keys']);
    await page.getByRole('button', { name: 'Revoke leaving' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke the key leaving' });
    await dialog.getByLabel('Type leaving to confirm').fill('leav');
    await page.evaluate<void, string>(
      async (path) => void (await fetch(path, { method: 'DELETE' })),
      `/console/api/tenants/${id}/keys/${key.id}`,
    );
    await page.getByText('revoked', { exact: true }).waitFor();
    expect(await dialog.getByLabel('Type leaving to confirm').inputValue()).toBe('leav');
  });
}
