import { Counter, Gauge, metrics } from '@tollgate/runtime';

const RESULTS = ['agree', 'differ', 'failed'] as const;

const runs = new Counter({
  name: 'tollgate_reconcile_runs_total',
  help: 'Ended runs of reconcile, by result: agree, differ, failed (no result)',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const differences = new Gauge({
  name: 'tollgate_reconcile_differences',
  help: 'Differences that the last run of reconcile of this process found; 0 before the first',
  registers: [metrics],
});

// Start every series at zero: otherwise a rate misses the first count.
for (const result of RESULTS) runs.inc({ result }, 0);

/** @param found the number of differences; null if the run failed */
export function countRun(found: number | null): void {
  runs.inc({ result: found === null ? 'failed' : found === 0 ? 'agree' : 'differ' });
  if (found !== null) differences.set(found);
}
