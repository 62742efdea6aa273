import type { ReconcileReport, ReconcileRun } from '@tollgate/contracts';
import { delay } from '@tollgate/runtime/timing';
import type { Context } from '../command/context';
import { Failure } from '../command/failure';
import { formatNanos } from '../command/money';
import { repairAll } from './repair';
import { counted, table } from '../command/table';

/** The server answers within about 10 s, with the report or with the id of the run. */
const START_TIMEOUT_MS = 30_000;
const ASK_AGAIN_MS = 2_000;
/** Ids shown per difference. `--json` has all. */
const MAX_SHOWN_IDS = 3;

type Report = ReconcileReport & { currency: string };
type Running = Extract<ReconcileRun, { state: 'running' }>;
type Run = Exclude<ReconcileRun, { state: 'done' }> | { state: 'done'; report: Report };

/**
 * False if the books differ. With `repair`, the admission store is repaired first, if the person agrees, and the answer
 * is that of the run after it.
 */
export async function reconcile(context: Context, options: { repair: boolean; yes: boolean }): Promise<boolean> {
  let report = await run(context);
  if (options.repair && !report.ok && (await repairAll(context, report, options.yes))) report = await run(context);
  context.output.answer(report, text(report));
  return report.ok;
}

async function run({ client, output }: Context): Promise<Report> {
  let { data } = await client.post<{ data: Report | Running }>('/reconcile', {}, START_TIMEOUT_MS);
  while ('state' in data) {
    output.note(
      `${counted(data.events, 'event')}, ${counted(data.tenants, 'tenant')}, ` +
        `${counted(data.differenceCount, 'difference')} so far …`,
    );
    await delay(ASK_AGAIN_MS);
    const { data: run } = await client.get<{ data: Run }>(`/reconcile/${data.id}`);
    // The code that a run gets which fails while the server waits for it.
    if (run.state === 'failed') throw new Failure(run.reason, 'unavailable');
    data = run.state === 'done' ? run.report : run;
  }
  return data;
}

function text(report: Report): string {
  const { currency, differences, differenceCount, truncated } = report;
  const sums = [
    ['Usage events', formatNanos(report.eventsNanos, currency)],
    ['Charges', formatNanos(report.chargesNanos, currency)],
    ['Ledger debits', formatNanos(report.debitsNanos, currency)],
    ['Carried, not yet a cent', formatNanos(report.carriedNanos, currency)],
  ];
  const lines = [
    `${counted(report.tenants, 'tenant')}, ${counted(report.events, 'usage event')}; ` +
      `${counted(report.pendingHolds, 'request')} running, ${report.settledHolds} on the way into the books.`,
    `Journal: ${report.journalEntries} ${report.journalEntries === 1 ? 'entry' : 'entries'}, ${report.journalDigest}`,
    '',
    table(['', 'SUM'], sums, ''),
    '',
  ];
  if (report.ok) return [...lines, 'The books agree.'].join('\n');
  const rows = differences.map((one) => [one.check, one.tenantId, one.expected, one.actual, shownIds(one.ids)]);
  lines.push(
    `THE BOOKS DIFFER in ${truncated ? 'at least ' : ''}${counted(differenceCount, 'place')}:`,
    table(['CHECK', 'TENANT', 'EXPECTED', 'ACTUAL', 'IDS'], rows, ''),
  );
  if (differenceCount > differences.length) lines.push(`Only the first ${differences.length} of them are named.`);
  if (truncated) lines.push('There are more: repair these, and run it again.');
  return lines.join('\n');
}

function shownIds(ids: readonly string[]): string {
  const rest = ids.length - MAX_SHOWN_IDS;
  return ids.slice(0, MAX_SHOWN_IDS).join(' ') + (rest > 0 ? ` and ${rest} more` : '');
}
