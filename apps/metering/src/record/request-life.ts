import { MAX_FAILED_ATTEMPTS, type FailedAttempt, type LimitNumbers, type RequestLife } from '@tollgate/contracts';
import { isCallerRequestId } from './caller-requests';

const DIGITS = /^\d{1,19}$/;
const CODE = /^[A-Z][A-Z0-9_]{1,39}$/;
const MAX_NAME_CHARS = 256;
/** Printable, as PostgreSQL refuses NUL, and lone surrogates are not text. */
const NAME = /^[^\p{Cc}\p{Cs}]+$/u;
const WHY = new Set<FailedAttempt['why']>(['refused', 'too_large', 'busy', 'timeout', 'stopped', 'failed']);

/** A life as it is stored. */
export interface StoredLife extends RequestLife {
  /** The `x-request-id` that the caller chose. `caller_request` is not searched by our id. */
  caller?: string;
}

/**
 * The life of a request as it is stored: made from the fields that are known, so that its length is bounded. Null:
 * there is none, or it is malformed. That must not keep its event from being charged.
 */
export function storedLife({ life: value, callerRequestId: caller }: Lived): string | null {
  const { key, tenant, heldNanos, endNanos, extensions, firstMs, failed, asked, late } = fieldsOf(value);
  if (!isLimits(key) || !isLimits(tenant) || !isNanos(heldNanos)) return null;
  const life: StoredLife = {
    key: [...key],
    tenant: [...tenant],
    heldNanos,
    ...(isNanos(endNanos) && { endNanos }),
    ...(isCount(extensions) && { extensions }),
    ...(isCount(firstMs) && { firstMs }),
    ...someAttempts(failed),
    ...(isName(asked) && { asked }),
    ...(late === true && { late }),
    ...(isCallerRequestId(caller) && { caller }),
  };
  return JSON.stringify(life);
}

/** A usage event, as far as its life goes. */
interface Lived {
  life?: unknown;
  callerRequestId?: unknown;
}

/** The attempts that are well-formed, as a field; empty if there are none. Of too many: the first ones and the last. */
export function someAttempts(value: unknown): { failed?: FailedAttempt[] } {
  if (!Array.isArray(value)) return {};
  const all: readonly unknown[] = value;
  const last = all.length > MAX_FAILED_ATTEMPTS ? -1 : MAX_FAILED_ATTEMPTS - 1;
  const kept = [...all.slice(0, MAX_FAILED_ATTEMPTS - 1), ...all.slice(last)];
  const failed = kept.flatMap((one: unknown): FailedAttempt[] => {
    const { backend, why, status, code } = fieldsOf(one);
    if (!WHY.has(why as FailedAttempt['why'])) return [];
    return [
      {
        ...(isName(backend) && { backend }),
        why: why as FailedAttempt['why'],
        ...(isCount(status) && { status }),
        ...(typeof code === 'string' && CODE.test(code) && { code }),
      },
    ];
  });
  return failed.length > 0 ? { failed } : {};
}

export function isNanos(value: unknown): value is string {
  return typeof value === 'string' && DIGITS.test(value);
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether `value` may be the name of a model, a backend or a price. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_NAME_CHARS && NAME.test(value);
}

function isLimits(value: unknown): value is LimitNumbers {
  return Array.isArray(value) && value.length === 3 && value.every(isCount);
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
