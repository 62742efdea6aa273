import type { Service } from '@tollgate/contracts';

/**
 * The order of an upgrade (docs/operating/upgrades.md). The console asks as the gateways do, and is replaced with them.
 */
export const ORDER = ['billing', 'metering', 'auth', 'gateway'] as const satisfies readonly Service[];
