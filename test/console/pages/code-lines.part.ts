import { eventually } from '@tollgate/testing';
import { openPage } from '../browser/looks';
import { runNode, runShell } from './running-lines';
import type { OnPage } from '../running/deployed';

/** The lines of code for a new key. The lines of Python: code-lines.python.test.ts. */
export function codeLineTests(deployed: () => OnPage): void {
  it('the lines that the page shows for a new key run as they are', async () => {
    const { console_, page, call } = deployed();
    const { id } = (await call('operator/tenants', { name: 'Programming' })) as { id: string };
    const booking = { kind: 'topup', amountCents: 100, reason: 'for the lines', ref: 'lines-1' };
    await call(`operator/tenants/${id}/credit`, booking);
    await openPage(page, { base: console_.base, tenantId: id }, ['keys', 'Keys']);
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Name').fill("it's new");
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'The new key' });
    const key = (await dialog.getByLabel('Key', { exact: true }).textContent())!;
    const lines = async (tab: string) => {
      await dialog.getByRole('tab', { name: tab }).click();
      const code = (await dialog.getByRole('tabpanel', { name: tab }).getByLabel('Command').textContent())!;
      expect(code).toContain(key);
      return code;
    };
    const curl = await lines('curl');
    // Until the gateway has the key and the credit, and is not too busy.
    const answered = await eventually(() => runShell(`${curl} --silent --fail`));
    const { choices } = JSON.parse(answered) as { choices: { message: { content: string } }[] };
    expect(choices[0]!.message.content).not.toBe('');
    const node = await lines('Node');
    const printed = await eventually(() => runNode(node));
    expect(printed).not.toMatch(/^(undefined|null)?$/);
    expect(await lines('Python')).toContain('from openai import OpenAI');
    await dialog.getByRole('button', { name: 'Done' }).click();
  });
}
