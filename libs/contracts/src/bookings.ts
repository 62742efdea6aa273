/** The largest amount of one entry of money in or out. */
export const MAX_ENTRY_CENTS = 1_000_000_000_000;
/** Of the reference that makes a repeat of a booking harmless. */
export const MAX_REF_CHARS = 200;
/** Of the reason for an entry. */
export const MAX_REASON_CHARS = 500;
