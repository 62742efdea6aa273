/** Of every path of the operator API. Its port serves the probes without it. */
export const OPERATOR_PREFIX = '/_operator/v1';
