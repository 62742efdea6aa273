// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
export declare const SERVICES: readonly ['gateway', 'auth', 'metering', 'billing'];
export type Service = (typeof SERVICES)[number];
