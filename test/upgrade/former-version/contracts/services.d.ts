export declare const SERVICES: readonly ['gateway', 'auth', 'metering', 'billing'];
export type Service = (typeof SERVICES)[number];
