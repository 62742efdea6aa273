import type { IdempotencyOptions } from './idempotency/idempotency-keys';
import type { Tracer } from '@tollgate/runtime';
import type { UpstreamLimits } from './upstream/connections';

export interface GatewayOptions {
  /** Base URL (ends in /v1) that the backend url "simulator:" stands for. */
  simulatorUrl?: string;
  /** Only the limits that differ from the defaults. */
  upstreamLimits?: Partial<UpstreamLimits>;
  /** Memory for the bodies of all requests in progress. */
  bodyMemoryMib?: number;
  /** Proxies whose `X-Forwarded-For` is believed, as in TOLLGATE_TRUSTED_PROXIES. */
  trustedProxies?: string | undefined;
  /** Absent: the header Idempotency-Key is ignored. */
  idempotency?: IdempotencyOptions;
  /** Null or absent: no tracing. */
  tracer?: Tracer | null;
  /** Shorter in tests, whose leases are shorter. */
  heartbeatIntervalMs?: number;
}

export const GATEWAY_OPTIONS = Symbol('GATEWAY_OPTIONS');
