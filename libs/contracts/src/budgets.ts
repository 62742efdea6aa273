/** Keys of one tenant whose budget was ever set. An admission store that lost them receives all of them at once. */
export const MAX_KEY_BUDGETS = 10_000;
/** Thresholds of one budget. */
export const MAX_THRESHOLDS = 10;
