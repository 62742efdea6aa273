import { Counter, metrics } from '@tollgate/runtime';

/** Counted by every implementation of the store. */
export const forbiddenTransitions = new Counter<'operation'>({
  name: 'tollgate_admission_forbidden_transitions_total',
  help: 'Operations on holds that were refused because the hold is not pending: it ended, or there never was one',
  labelNames: ['operation'],
  registers: [metrics],
});

// All from the start on: a series that begins with its first count hides that count from a rate.
for (const operation of ['extend', 'progress', 'settle', 'void']) forbiddenTransitions.inc({ operation }, 0);
