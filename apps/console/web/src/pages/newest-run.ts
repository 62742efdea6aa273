import type { ReconcileRun } from '../../../src/api/answers';

/** The run that began last. Each may be older than the other: they come from different questions. */
export function newestRun(own: ReconcileRun | undefined, latest: ReconcileRun | null): ReconcileRun | null {
  if (own === undefined || latest === null) return own ?? latest;
  // Of the same run, the own answer may be the newer one, and only a run that goes on changes.
  if (own.id === latest.id) return own.state === 'running' ? latest : own;
  return Date.parse(latest.startedAt) > Date.parse(own.startedAt) ? latest : own;
}
