import type { UpstreamLimits } from './upstream/connections';

export interface GatewayOptions {
  /** Base URL (ends in /v1) that the backend url "simulator:" stands for. */
  simulatorUrl?: string;
  /** Where they differ from the defaults. */
  upstreamLimits?: Partial<UpstreamLimits>;
  /** For the bodies of all requests in hand. */
  bodyMemoryMib?: number;
  /** For tests, whose leases are shorter. */
  signOfLifeIntervalMs?: number;
}

export const GATEWAY_OPTIONS = Symbol('GATEWAY_OPTIONS');
