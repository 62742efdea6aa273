import { eventually } from '@tollgate/testing';
import type { Overview } from '../../../apps/console/src/api/answers';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { openPage } from '../browser/looks';
import type { RunningConsole } from '../running/running-console';
import type { OnPage } from '../running/deployed';

const run = promisify(execFile);
const ARRIVES_WITHIN_MS = 120_000;
const TOLLGATE = resolve(__dirname, '../../../tools/tollgate.mjs');
const MONTH = /^\d{4}-\d{2}$/;
/** The pages of a tenant that have nothing to show at first. */
const EMPTY_PAGES = [
  ['overview', 'Overview'],
  ['usage', 'Usage'],
  ['requests', 'Requests'],
  ['keys', 'Keys'],
  ['settings/tokens', 'Management tokens'],
] as const;

/** A service that is busy or has just started answers 503: a person repeats the command. */
const REPEATED = ['unavailable', 'overloaded_error'];

/** What a command of a page prints, as soon as its service answers. */
function answerOf(command: string, env: NodeJS.ProcessEnv): Promise<unknown> {
  return eventually(
    async () => {
      const { stdout } = await run('sh', ['-c', command], { env });
      const answer = JSON.parse(stdout) as { error?: { code: string } };
      expect(REPEATED).not.toContain(answer.error?.code);
      return answer;
    },
    { timeoutMs: ARRIVES_WITHIN_MS },
  );
}

/** Pages that have nothing to show, and the commands that they show instead. */
export function emptyTests(deployed: () => OnPage): void {
  it('every empty page of a tenant has a command that works, and a first token is created on its page', async () => {
    const { console_, page, call } = deployed();
    const { base } = console_;
    await page.setViewportSize({ width: 1280, height: 800 });
    const { id: tenantId } = (await call('operator/tenants', { name: 'Empty' })) as { id: string };
    const commands: string[] = [];
    for (const at of EMPTY_PAGES) {
      await openPage(page, { base, tenantId }, at);
      commands.push((await page.getByLabel('Command').textContent())!);
    }
    await openPage(page, { base, tenantId }, ['credit', 'Credit']);
    await page.getByText('No invoice has been issued yet.').waitFor();
    expect(JSON.parse(await runShown(deployed()))).toMatchObject({ balanceCents: 1_000, created: true });
    await openPage(page, { base, tenantId }, ['credit', 'Credit']);
    await page.getByRole('row', { name: / topup 10\.00 USD 10\.00 USD / }).waitFor();
    await openPage(page, { base, tenantId }, ['settings/tokens', 'Management tokens']);
    await page.getByRole('button', { name: 'Create a token' }).click();
    await page.getByLabel('Name').fill('the first one');
    for (const scope of ['usage:read', 'tokens:read']) await page.getByLabel(scope, { exact: false }).check();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const token = (await page.getByLabel('Token', { exact: true }).textContent())!.trim();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /^the first one/ }).waitFor();

    // The books have the credit. Admission hears of it later, and refuses the first request until then.
    await eventually(
      async () => {
        const { credit } = (await call(`tenants/${tenantId}/overview`)) as Overview;
        expect(BigInt(credit.admission?.availableNanos ?? 0)).toBeGreaterThan(0n);
      },
      { timeoutMs: ARRIVES_WITHIN_MS },
    );
    const { key } = (await call(`tenants/${tenantId}/keys`, { name: 'for the commands' })) as { key: string };
    const env = { ...process.env, TOLLGATE_KEY: key, TOLLGATE_TOKEN: token };
    for (const command of commands)
      expect([command, await answerOf(command, env)]).toEqual([
        command,
        expect.not.objectContaining({ error: expect.anything() }),
      ]);
    // The same answers now have content.
    await eventually(
      async () => {
        await openPage(page, { base, tenantId }, ['requests', 'Requests']);
        expect(await page.getByRole('button', { name: /^Show the books of / }).count()).toBeGreaterThan(0);
      },
      { timeoutMs: ARRIVES_WITHIN_MS },
    );
  });

  it('an audit log without changes says what will be in it, and speaks of filters only if there are some', async () => {
    const { console_, page } = deployed();
    const log = /\/console\/api\/operator\/audit/;
    await page.route(log, (route) => route.fulfill({ json: { data: [], nextCursor: null, actions: [] } }));
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/audit', 'Audit']);
    await page.getByText('Nothing has been changed yet.').waitFor();
    await page.getByLabel('Author, by id or name').fill('nobody');
    await page.getByText('No change matches these filters.').waitFor();
    await page.unroute(log);
  });

  it('older entries of credit that cannot be read are an error, and are asked for again', async () => {
    const { console_, page } = deployed();
    const { base, demo } = console_;
    const first = /\/console\/api\/tenants\/ten_\w+\/credit$/;
    const older = /\/console\/api\/tenants\/ten_\w+\/credit\?after=/;
    const error = { code: 'invalid_request', message: 'No such page.', requestId: 'req_older' };
    await page.route(first, async (route) => {
      const answer = (await (await route.fetch()).json()) as { entries: { id: string }[] };
      await route.fulfill({ json: { ...answer, nextCursor: answer.entries.at(-1)!.id } });
    });
    await page.route(older, (route) => route.fulfill({ status: 400, json: { error } }));
    await openPage(page, { base, tenantId: demo!.tenantId }, ['credit', 'Credit']);
    await page.getByRole('button', { name: 'Older entries' }).click();
    await page.getByRole('alert').getByText('No such page.').waitFor();
    await page.unroute(older);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Older entries' }).waitFor({ state: 'detached' });
    await page.unroute(first);
  });

  it('an operator who finds no tenant gets a command that makes one', async () => {
    const { console_, page } = deployed();
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/tenants', 'Tenants']);
    await page.getByLabel('Search by name or id').fill('a tenant that nobody has');
    expect(await runShown(deployed())).toContain('"name":"acme"');
  });

  it('an operator without invoices gets a command that closes the last month', async () => {
    const { console_, page } = deployed();
    // As it is before the first invoice.
    const nothing = { data: [], nextCursor: null };
    await page.route(/\/console\/api\/operator\/invoices/, (route) => route.fulfill({ json: nothing }));
    await openPage(page, { base: console_.base, tenantId: '' }, ['/operator/invoices', 'Invoices']);
    const closed = JSON.parse(await runShown(deployed())) as Record<string, unknown>;
    await page.unroute(/\/console\/api\/operator\/invoices/);
    expect(Object.keys(closed).length).toBeGreaterThan(0);
    expect((await page.getByLabel('Command').textContent())!.split(' ').at(-1)).toMatch(MONTH);
  });
}

/** Runs the command of `tollgate` on the page as an operator does, and returns its JSON. */
async function runShown({ console_, page }: { console_: RunningConsole; page: Page }): Promise<string> {
  const [npx, tollgate, ...args] = (await page.getByLabel('Command').textContent())!.split(' ');
  expect([npx, tollgate]).toEqual(['npx', 'tollgate']);
  const { operatorUrl, operatorSecret } = console_;
  const env = { ...process.env, TOLLGATE_OPERATOR_URL: operatorUrl, TOLLGATE_OPERATOR_SECRET: operatorSecret };
  const { stdout } = await run(process.execPath, [TOLLGATE, ...args, '--json'], { env });
  return JSON.stringify(JSON.parse(stdout));
}
