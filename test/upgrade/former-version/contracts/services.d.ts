// Of commit 0301f64688deb51804dad2737d7f35974c7592c6. Kept by tools/checks/former-contracts.mjs.
export declare const SERVICES: readonly ['gateway', 'auth', 'metering', 'billing'];
export type Service = (typeof SERVICES)[number];
