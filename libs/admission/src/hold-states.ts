/**
 * What can happen to a hold, and where that leads: the one table of it. The conformance suite tries every operation in
 * every state on every implementation against this table (suite/states.suite.ts); the SQL and Lua functions cannot
 * import it.
 *
 * `none`: the store knows no such hold. It was never admitted, or is gone: void, expired without anything delivered, or
 * released. Nothing of a hold that is gone is kept, and so an id that was used up would be admitted anew: ids are
 * minted once, and metering and billing take each once.
 */
export type HoldState = 'none' | 'pending' | 'settled';

export type HoldOperation =
  | 'admit'
  | 'extend'
  | 'progress'
  | 'settle'
  | 'void'
  /** By the sweep, past the deadline, with something delivered. */
  | 'expire'
  /** By the sweep, past the deadline, with nothing delivered. */
  | 'expireEmpty'
  /** By the sweep: not released in time. */
  | 'handOut'
  /** By billing's news: the ledger has it. */
  | 'release';

/**
 * A state: done, and then it is in that one. `repeat`: the first answer again, nothing changes. `forbidden`: refused
 * and counted, nothing changes. `mistake`: a RangeError, nothing changes. `passed`: it does not concern this hold, and
 * nothing changes.
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
