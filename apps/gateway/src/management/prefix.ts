/** Every path below it is answered in the envelope of the management API. */
export const MANAGEMENT_ROOT = '/_api';
/** Prefix of every path of the management API. */
export const MANAGEMENT_PREFIX = '/_api/v1';
