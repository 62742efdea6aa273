import type { Limits } from '@tollgate/admission';
import type { FailedAttempt, LimitNumbers, RequestLife } from '@tollgate/contracts';

/** The limits that a request was admitted under. */
export interface AdmittedUnder {
  readonly keyLimits: Limits;
  readonly tenantLimits: Limits;
}

/** What a request tells of its life. */
export interface Lived {
  readonly admittedUnder: AdmittedUnder;
  /** Held at its admission, and at its end. */
  readonly heldNanos: bigint;
  readonly endNanos: bigint;
  readonly extensions: number;
  /** From its admission to its first output. Null: not a stream, or none came. */
  readonly firstMs: number | null;
  /** Null: every attempt succeeded. */
  readonly failed: readonly FailedAttempt[] | null;
  /** The model that was asked for, if a fallback served. Null: it served itself. */
  readonly asked: string | null;
}

/** How a request ran, for its usage event: some 90 bytes of it, more only where something was unusual. */
export function lifeOf(lived: Lived): RequestLife {
  const { admittedUnder, heldNanos, endNanos, extensions, firstMs, failed, asked } = lived;
  const life: RequestLife = {
    key: numbersOf(admittedUnder.keyLimits),
    tenant: numbersOf(admittedUnder.tenantLimits),
    heldNanos: String(heldNanos),
  };
  if (endNanos !== heldNanos) life.endNanos = String(endNanos);
  if (extensions > 0) life.extensions = extensions;
  if (firstMs !== null) life.firstMs = firstMs;
  if (failed !== null && failed.length > 0) life.failed = failed;
  if (asked !== null) life.asked = asked;
  return life;
}

function numbersOf({ requestsPerMinute, tokensPerMinute, concurrency }: Limits): LimitNumbers {
  return [requestsPerMinute, tokensPerMinute, concurrency];
}
