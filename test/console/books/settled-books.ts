import { reconcileReport, type Report } from '../../e2e/reconcile';
import type { RunningConsole } from '../running/running-console';

/** The report of a run of reconcile that finds no difference and nothing on its way. Otherwise it throws. */
export async function settledBooks(console_: RunningConsole): Promise<Report> {
  const report = await reconcileReport(console_);
  expect(report).toMatchObject({ ok: true, pendingHolds: 0, settledHolds: 0 });
  // The charges have arrived, too.
  expect(BigInt(report.debitsNanos) + BigInt(report.carriedNanos)).toBe(BigInt(report.eventsNanos));
  return report;
}
