/** The largest amount of one entry of money in or out. */
export const MAX_ENTRY_CENTS = 1_000_000_000_000;
/** Of the reference that makes a repeat of a booking harmless. */
export const MAX_REF_CHARS = 200;
/** Of the reason for an entry. */
export const MAX_REASON_CHARS = 500;

/** The source of usage entries. */
export const METERING_SOURCE = 'metering';
/** The source of entries that reverse an invoice. */
export const INVOICE_SOURCE = 'invoice';
/** The source of entries that write off the last cent of a closed tenant. */
export const LAST_CENT_SOURCE = 'last-cent';
/** Only billing itself books with them. */
export const RESERVED_SOURCES: readonly string[] = [METERING_SOURCE, INVOICE_SOURCE, LAST_CENT_SOURCE];
