/** Prefix of every path of the management API. */
export const MANAGEMENT_PREFIX = '/_api/v1';
