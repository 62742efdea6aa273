export const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'] as const;
/** A deployable that communicates by messages. */
export type Service = (typeof SERVICES)[number];
