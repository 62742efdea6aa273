import type { ReconcileReport, ReconcileRun } from '@tollgate/contracts';
import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from './commands';
import { formatNanos } from './money';
import { table } from './table';

/** The server answers within some 10 s, with the report or with the run to ask after. */
const START_TIMEOUT_MS = 30_000;
const ASK_AGAIN_MS = 2_000;
/** Ids shown of one difference; `--json` has all. */
const MAX_SHOWN_IDS = 3;

type Report = ReconcileReport & { currency: string };
type Running = Extract<ReconcileRun, { state: 'running' }>;

/** False: the books differ. */
export async function reconcile({ client, output }: Context): Promise<boolean> {
  let { data } = await client.post<{ data: Report | Running }>('/reconcile', {}, START_TIMEOUT_MS);
  while ('state' in data) {
    output.note(`${data.events} events, ${data.tenants} tenants, ${data.differenceCount} differences so far …`);
    await delay(ASK_AGAIN_MS);
    const run = await client.get<{ data: Running | { state: 'done'; report: Report } }>(`/reconcile/${data.id}`);
    data = run.data.state === 'done' ? run.data.report : run.data;
  }
  output.answer(data, text(data));
  return data.ok;
}

function text(report: Report): string {
  const { currency, differences, differenceCount } = report;
  const sums = [
    ['Usage events', formatNanos(report.eventsNanos, currency)],
    ['Charges', formatNanos(report.chargesNanos, currency)],
    ['Ledger debits', formatNanos(report.debitsNanos, currency)],
    ['Carried, not yet a cent', formatNanos(report.carriedNanos, currency)],
  ];
  const lines = [
    `${report.tenants} tenants, ${report.events} usage events; ${report.pendingHolds} requests running, ${report.settledHolds} on their way into the books.`,
    '',
    table(['', 'SUM'], sums, ''),
    '',
  ];
  if (report.ok) return [...lines, 'The books agree.'].join('\n');
  const rows = differences.map((one) => [one.check, one.tenantId, one.expected, one.actual, shownIds(one.ids)]);
  lines.push(
    `THE BOOKS DIFFER in ${differenceCount} places:`,
    table(['CHECK', 'TENANT', 'EXPECTED', 'ACTUAL', 'IDS'], rows, ''),
  );
  if (differenceCount > differences.length) lines.push(`Only the first ${differences.length} are named.`);
  return lines.join('\n');
}

function shownIds(ids: readonly string[]): string {
  const rest = ids.length - MAX_SHOWN_IDS;
  return ids.slice(0, MAX_SHOWN_IDS).join(' ') + (rest > 0 ? ` and ${rest} more` : '');
}
