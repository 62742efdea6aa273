import { Counter, metrics, PolledGauge } from '@tollgate/runtime';

const RESULTS = ['agree', 'differ', 'failed'] as const;

const runs = new Counter({
  name: 'tollgate_reconcile_runs_total',
  help: 'Ended runs of reconcile, by result: agree, differ, failed (no result)',
  labelNames: ['result'] as const,
  registers: [metrics],
});

/** Every process of billing reports the same value. */
export const differences = new PolledGauge({
  name: 'tollgate_reconcile_differences',
  help: 'Differences that the newest complete run of reconcile found, on any replica; 0 before the first',
});

// Start every series at zero: otherwise a rate misses the first count.
for (const result of RESULTS) runs.inc({ result }, 0);

/** @param found the number of differences; null if the run failed */
export function countRun(found: number | null): void {
  runs.inc({ result: found === null ? 'failed' : found === 0 ? 'agree' : 'differ' });
}
