export const SERVICES = ['gateway', 'auth', 'metering', 'billing'] as const;
/** A deployable that talks over the messages. */
export type Service = (typeof SERVICES)[number];
