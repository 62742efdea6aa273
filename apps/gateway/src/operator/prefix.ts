/** Prefix of every path of the operator API. The probes on its port have no prefix. */
export const OPERATOR_PREFIX = '/_operator/v1';
