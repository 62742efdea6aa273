/**
 * All transitions of a hold, in one table. The conformance suite tries every operation in every state on every
 * implementation against this table (suite/states.suite.ts). The SQL and Lua functions cannot import it.
 * `none`: the store has no such hold. It was never admitted, or it is gone: void, expired without anything delivered,
 * or released. Nothing of it is kept, so the same id would be admitted again. Ids are therefore minted once, and
 * metering and billing accept each id once.
 */
export type HoldState = 'none' | 'pending' | 'settled';

export type HoldOperation =
  | 'admit'
  | 'extend'
  | 'progress'
  | 'settle'
  | 'void'
  /** By the sweep, after the deadline, with something delivered. */
  | 'expire'
  /** By the sweep, after the deadline, with nothing delivered. */
  | 'expireEmpty'
  /** By the sweep: not released in time. */
  | 'handOut'
  /** By a balance update: the ledger has the charge. */
  | 'release';

/**
 * A state: the operation succeeds and leads to that state. The others change nothing:
 * - `repeat`: returns the first result again.
 * - `forbidden`: refused and counted.
 * - `mistake`: a RangeError.
 * - `passed`: the operation does not concern this hold.
 */
export type Transition = HoldState | 'repeat' | 'forbidden' | 'mistake' | 'passed';

export const HOLD_TRANSITIONS = {
  /*                  none         pending    settled */
  admit: /*       */ ['pending', 'repeat', 'mistake'],
  extend: /*      */ ['forbidden', 'pending', 'forbidden'],
  progress: /*    */ ['forbidden', 'pending', 'forbidden'],
  settle: /*      */ ['forbidden', 'settled', 'repeat'],
  void: /*        */ ['forbidden', 'none', 'forbidden'],
  expire: /*      */ ['passed', 'settled', 'passed'],
  expireEmpty: /* */ ['passed', 'none', 'passed'],
  handOut: /*     */ ['passed', 'passed', 'settled'],
  release: /*     */ ['passed', 'passed', 'none'],
} as const satisfies Record<HoldOperation, readonly [Transition, Transition, Transition]>;

const COLUMNS: readonly HoldState[] = ['none', 'pending', 'settled'];

export function transition(state: HoldState, operation: HoldOperation): Transition {
  return HOLD_TRANSITIONS[operation][COLUMNS.indexOf(state)]!;
}

/** The operations that a state can forbid. */
export type RefusableOperation = {
  [O in HoldOperation]: 'forbidden' extends (typeof HOLD_TRANSITIONS)[O][number] ? O : never;
}[HoldOperation];

export const REFUSABLE_OPERATIONS = (Object.keys(HOLD_TRANSITIONS) as HoldOperation[]).filter((operation) =>
  (HOLD_TRANSITIONS[operation] as readonly Transition[]).includes('forbidden'),
) as RefusableOperation[];
