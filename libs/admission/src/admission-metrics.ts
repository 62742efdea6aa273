import { Counter, Gauge, metrics, onlyFrom } from '@tollgate/runtime';
import { REFUSABLE_OPERATIONS, type RefusableOperation } from './operations/hold-states';

/** Incremented by every implementation of the store. */
export const forbiddenTransitions = new Counter<'operation'>({
  name: 'tollgate_admission_forbidden_transitions_total',
  help: 'Refused operations on holds that are not pending: the hold has ended or never existed',
  labelNames: ['operation'],
  registers: [metrics],
});

/** Counts operations that operations/hold-states.ts forbids. */
export function countForbidden(operation: RefusableOperation, count = 1): void {
  if (count > 0) forbiddenTransitions.inc({ operation }, count);
}

// Start every series at zero: otherwise a rate misses the first count.
for (const operation of REFUSABLE_OPERATIONS) forbiddenTransitions.inc({ operation }, 0);

/** Set by each process that sweeps, over all tenants. All of them report the same value. */
export const holds = new Gauge<'state'>({
  name: 'tollgate_holds',
  help: 'Holds at the last sweep by state: pending (request running), settled (not confirmed by the ledger)',
  labelNames: ['state'],
  registers: [metrics],
});

onlyFrom(['gateway', 'metering'], 'tollgate_admission_forbidden_transitions_total');
onlyFrom(['metering'], 'tollgate_holds');
