import { eventually, onceServed, type TestDatabase } from '@tollgate/testing';
import type { Page } from 'playwright-core';
import { operator as operatorApi } from '../../e2e/deployment';
import type { Report } from '../../e2e/reconcile';
import { configurationOf } from '../books/invoice.fixture';
import { endMonth } from '../books/month-end.fixture';
import { settledBooks } from '../books/settled-books';
import { nanosOf } from '../browser/shown-amounts';
import { openPage } from '../browser/looks';
import type { RunningConsole } from '../running/running-console';

const ARRIVES_WITHIN_MS = 120_000;
const DAY_MS = 86_400_000;
const NANOS_PER_CENT = 10_000_000n;
const SERVED = 6;
const CUT = 3;

/** After a month's end, whole answers, streams that their client cut, a refund and an adjustment. */
export function numberTests(deployed: () => { console_: RunningConsole; page: Page; database: TestDatabase }): void {
  it('the numbers on the screen are those of the API and of reconcile, to the last digit', async () => {
    const { console_, page, database } = deployed();
    const api = operatorApi(console_);
    const create = async (path: string, body: object) =>
      (await onceServed(() => api.post<{ data: { id: string; key?: string } }>(`/_operator/v1${path}`, body))).body
        .data;
    const { id: tenantId } = await create('/tenants', { name: 'Counted' });
    const at = `/tenants/${tenantId}`;
    const money = (path: string, body: object) =>
      api
        .post(`/_operator/v1${at}${path}`, { source: 'manual', ...body })
        .then(({ status }) => expect(status).toBeLessThan(300));
    await money('/credit', { amountCents: 5_000, ref: 'counted-1' });
    const months = await endMonth(database, tenantId, await configurationOf(page, console_), async (period) => {
      const closed = await api.post<{ data: object }>('/_operator/v1/invoices/close', { period, tenantId });
      expect([closed.status, Object.keys(closed.body.data)]).toEqual([200, ['invoices', 'empty', 'waiting']]);
    });
    const { key } = await create(`${at}/keys`, { name: 'counted' });
    for (let i = 0; i < SERVED; i++) await ask(console_, key!, { tokens: 10 + i * 7 });
    for (let i = 0; i < CUT; i++) await askAndLeave(console_, key!);
    await money('/credit/refund', { amountCents: 1_234, ref: 'counted-2', reason: 'counted' });
    await money('/credit/adjust', { amountCents: -17, ref: 'counted-3', reason: 'counted' });

    const report = await settled(console_, tenantId);
    const state = await api.get<{ data: { balanceCents: number } }>(`/_operator/v1${at}/credit?limit=1`);
    const { nanos: spent } = await exported(console_, tenantId);
    expect(spent).toBeGreaterThan(0n);
    const balance = BigInt(state.body.data.balanceCents) * NANOS_PER_CENT;

    const figure = async (title: string) => nanosOf((await page.locator(`[data-figure="${title}"]`).textContent())!);
    await openPage(page, { base: console_.base, tenantId }, ['overview', 'Overview']);
    expect(await figure('Balance')).toBe(balance);
    expect(await figure('Spend, 30 days')).toBe(spent);
    expect(await figure('Held')).toBe(0n);
    await openPage(page, { base: console_.base, tenantId }, ['usage?by=none', 'Usage']);
    const total = await page
      .getByRole('row', { name: /^Total/ })
      .getByRole('cell')
      .last()
      .textContent();
    expect(nanosOf(total!)).toBe(spent);
    expect(
      await page
        .getByRole('row', { name: /^Total/ })
        .getByRole('cell')
        .nth(2)
        .textContent(),
    ).toBe(String(SERVED + CUT));
    await openPage(page, { base: console_.base, tenantId }, ['credit', 'Credit']);
    const entries = page.getByRole('region', { name: 'Entries' }).getByRole('row');
    expect(nanosOf((await entries.nth(1).getByRole('cell').nth(3).textContent())!)).toBe(balance);

    const issued = await api.get<{ data: Issued[] }>(`/_operator/v1/invoices?tenantId=${tenantId}`);
    expect(issued.body.data.map(({ period, amountCents }) => [period, amountCents])).toEqual(
      months.map(({ period, amountCents }) => [period, Number(amountCents)]).reverse(),
    );
    for (const { period, usedNanos, amountCents } of months) {
      await openPage(page, { base: console_.base, tenantId }, ['credit', 'Credit']);
      const { accountingNumber } = issued.body.data.find((one) => one.period === period)!;
      const invoice = page.getByRole('row', { name: `${period} ${accountingNumber} ` });
      expect(nanosOf((await invoice.getByRole('cell').nth(2).textContent())!)).toBe(amountCents * NANOS_PER_CENT);
      await invoice.getByRole('link').click();
      await page.getByRole('heading', { name: `Invoice ${accountingNumber}`, level: 1 }).waitFor();
      const sum = async (label: string) =>
        nanosOf((await page.getByRole('row', { name: label }).getByRole('cell').last().textContent())!);
      expect(await sum('Usage ')).toBe(usedNanos);
      expect(await sum('Paid from credit')).toBe(amountCents * NANOS_PER_CENT);
      expect(await sum('Carried between months')).toBe(amountCents * NANOS_PER_CENT - usedNanos);
    }

    await openPage(page, { base: console_.base, tenantId }, ['/operator/fleet', 'Fleet']);
    expect(await figure('Settled')).toBe(BigInt(report.eventsNanos));
    expect(await figure('Posted')).toBe(BigInt(report.debitsNanos));
    expect(await figure('Not posted yet')).toBe(BigInt(report.carriedNanos));
    await page.getByText('the books agree').waitFor();
    const proven = page
      .getByRole('row', { name: /^Cost of the events/ })
      .getByRole('cell')
      .last();
    expect(nanosOf((await proven.textContent())!)).toBe(BigInt(report.eventsNanos));
  });
}

interface Issued {
  period: string;
  accountingNumber: number;
  amountCents: number;
}

async function ask(console_: RunningConsole, key: string, { tokens }: { tokens: number }): Promise<void> {
  const answer = await onceServed(() =>
    fetch(`${console_.inferenceUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'sim-small',
        messages: [{ role: 'user', content: 'word '.repeat(tokens) }],
        max_tokens: tokens,
      }),
    }),
  );
  expect(answer.status).toBe(200);
  await answer.text();
}

/** Reads the beginning of a stream, and closes the connection. */
async function askAndLeave(console_: RunningConsole, key: string): Promise<void> {
  const left = new AbortController();
  const answer = await onceServed(() =>
    fetch(`${console_.inferenceUrl}/chat/completions`, {
      method: 'POST',
      signal: left.signal,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'sim-small',
        messages: [{ role: 'user', content: 'A long story' }],
        stream: true,
        max_tokens: 2_000,
      }),
    }),
  );
  expect(answer.status).toBe(200);
  const reader = answer.body!.getReader();
  let text = '';
  while (!text.includes('"content":"')) text += new TextDecoder().decode((await reader.read()).value);
  left.abort();
}

/** The tenant's requests of the last day and their exact cost, from the export of usage. */
async function exported(
  { operatorUrl, operatorSecret }: RunningConsole,
  tenantId: string,
): Promise<{ requests: number; nanos: bigint }> {
  // By default it begins with the month, which may end during the test.
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const url = `${operatorUrl}/_operator/v1/usage/export?format=ndjson&step=hour&from=${from}&tenantId=${tenantId}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${operatorSecret}` } });
  const lines = (await answer.text()).split('\n').filter((line) => line !== '');
  const rows = lines.map((line) => JSON.parse(line) as { requests: number; costNanos: string });
  return {
    requests: rows.reduce((sum, row) => sum + row.requests, 0),
    nanos: rows.reduce((sum, row) => sum + BigInt(row.costNanos), 0n),
  };
}

/** The report of a run that saw all requests of the tenant, and after which nothing is on its way any more. */
async function settled(console_: RunningConsole, tenantId: string): Promise<Report> {
  let report: Report | undefined;
  await eventually(
    async () => {
      expect((await exported(console_, tenantId)).requests).toBe(SERVED + CUT);
      report = await settledBooks(console_);
    },
    { timeoutMs: ARRIVES_WITHIN_MS },
  );
  return report!;
}
