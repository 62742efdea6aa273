import type { IdempotencyOptions } from './idempotency/idempotency-keys';
import type { Tracer } from '@tollgate/runtime';
import type { UpstreamLimits } from './upstream/fleet/connections';

/** MiB of a request body, unless the operator sets another limit. */
export const DEFAULT_MAX_BODY_MIB = 10;
/** The largest limit that the operator may set. The built-in simulator reads no more. */
export const LARGEST_MAX_BODY_MIB = 64;
/** MiB of the bodies of all requests in progress, unless the operator sets another limit. */
export const DEFAULT_BODY_MEMORY_MIB = 256;

export interface GatewayOptions {
  /** Base URL (ends in /v1) that the backend url "simulator:" stands for. */
  simulatorUrl?: string;
  /** Only the limits that differ from the defaults. */
  upstreamLimits?: Partial<UpstreamLimits>;
  /** The limit of an inference body. Not more than `bodyMemoryMib`. */
  maxBodyMib?: number;
  /** Memory for the bodies of all requests in progress. */
  bodyMemoryMib?: number;
  /** Proxies whose `X-Forwarded-For` and PROXY header are believed, as in TOLLGATE_TRUSTED_PROXIES. */
  trustedProxies?: string | undefined;
  /** Absent: the header Idempotency-Key is ignored. */
  idempotency?: IdempotencyOptions;
  /** Null or absent: no tracing. */
  tracer?: Tracer | null;
  /** Bytes of large plain answers that arrive. Less in tests. */
  arrivingAnswers?: { perTenant: number; all: number };
  /** Shorter in tests, whose leases are shorter. */
  heartbeatIntervalMs?: number;
}

export const GATEWAY_OPTIONS = Symbol('GATEWAY_OPTIONS');
