import { Counter, Gauge, metrics, onlyFrom } from '@tollgate/runtime';
import { REFUSABLE_OPERATIONS, type RefusableOperation } from './hold-states';

/** Counted by every implementation of the store. */
export const forbiddenTransitions = new Counter<'operation'>({
  name: 'tollgate_admission_forbidden_transitions_total',
  help: 'Refused operations on holds that are not pending: the hold ended, or there never was one',
  labelNames: ['operation'],
  registers: [metrics],
});

/** `count` times, the table of transitions forbade this (hold-states.ts). */
export function countForbidden(operation: RefusableOperation, count = 1): void {
  if (count > 0) forbiddenTransitions.inc({ operation }, count);
}

// All from the start on: a series that begins with its first count hides that count from a rate.
for (const operation of REFUSABLE_OPERATIONS) forbiddenTransitions.inc({ operation }, 0);

/** Set by whoever sweeps, over all tenants: the same in every process that does. */
export const holds = new Gauge<'state'>({
  name: 'tollgate_holds',
  help: 'Holds at the last sweep, by state: pending (a request runs), settled (the ledger has not confirmed it)',
  labelNames: ['state'],
  registers: [metrics],
});

onlyFrom(['gateway', 'metering'], 'tollgate_admission_forbidden_transitions_total');
onlyFrom(['metering'], 'tollgate_holds');
