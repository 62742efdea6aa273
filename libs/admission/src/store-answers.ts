import type { UsageEvent } from '@tollgate/contracts';
import type {
  AdmitResult,
  BucketState,
  ExtendResult,
  LimitState,
  LookRefusal,
  LookResult,
  RecallResult,
  Refusal,
  SettleResult,
  WithdrawResult,
} from './admission-store';

/**
 * The functions of both stores return the same values in the same order. PostgreSQL sends numbers as text. Redis sends
 * numbers where a double holds them exactly.
 */
export type Value = string | number | null | undefined;

/** Code, scope, wait, hold, output tokens, and the state of the limits. `storeEpoch`: only of a store that has one. */
export function readAdmit(values: readonly Value[], storeEpoch?: string): AdmitResult | RangeError {
  const [code, scope, retryAfterMs, holdNanos, outputTokens, ...state] = values;
  if (code === 'id_used') return new RangeError('this id belongs to another or an ended hold');
  const limits = readLimits(state);
  if (code !== 'held') return refusal(code as Refusal, scope, retryAfterMs, limits);
  const held = { holdNanos: BigInt(holdNanos!), outputTokens: Number(outputTokens), limits };
  return { kind: 'held', ...held, ...(storeEpoch === undefined ? {} : { storeEpoch }) };
}

/** Code (null: clear), scope, wait, and the state of the limits. */
export function readLook([code, scope, retryAfterMs, ...state]: readonly Value[]): LookResult {
  const limits = readLimits(state);
  if (code === null) return { kind: 'clear', limits };
  return refusal(code as LookRefusal['reason'], scope, retryAfterMs, limits);
}

/** Code, granted amount, and the whole hold. */
export function readExtend([code, granted, total]: readonly Value[]): ExtendResult {
  return code === 'extended'
    ? { kind: 'extended', grantedNanos: BigInt(granted!), holdNanos: BigInt(total!) }
    : { kind: code as 'refused' | 'forbidden' };
}

/** Code, and the record in force of a hold that was settled before. */
export function readSettle([code, record]: readonly Value[], event: UsageEvent): SettleResult | RangeError {
  if (code === 'over_hold')
    return new RangeError(`the cost of ${event.id}, ${event.costNanos} nanos, is above its hold`);
  if (code === 'forbidden' || code === 'lost') return { kind: code };
  if (code === 'settled') return { kind: 'settled', repeated: false, event };
  return { kind: 'settled', repeated: true, event: JSON.parse(record as string) as UsageEvent };
}

/** Code, and the available amount if it was too small. */
export function readWithdraw([code, available]: readonly Value[]): WithdrawResult {
  return code === 'refused'
    ? { kind: code, availableNanos: BigInt(available!) }
    : { kind: code as 'withdrawn' | 'overtaken' };
}

/** Code, fingerprint, age, and the length of the answer if there is one. No values: the claim is free. */
export function readRecall([code, fingerprint, ageMs, chars]: readonly Value[]): RecallResult {
  if (code === 'running') return { kind: 'running', fingerprint: String(fingerprint), ageMs: Number(ageMs) };
  if (code !== 'settled') return { kind: 'free' };
  return { kind: 'settled', fingerprint: String(fingerprint), answerChars: chars == null ? null : Number(chars) };
}

/** The buckets of the key, then the buckets of the tenant. */
function readLimits(state: readonly Value[]): LimitState {
  return { ...readBuckets(state, 0), tenant: readBuckets(state, 4) };
}

function readBuckets(state: readonly Value[], at: number): BucketState {
  return {
    requestsRemaining: Number(state[at]),
    requestsResetMs: Number(state[at + 1]),
    tokensRemaining: Number(state[at + 2]),
    tokensResetMs: Number(state[at + 3]),
  };
}

function refusal<R extends Refusal>(reason: R, scope: Value, retryAfterMs: Value, limits: LimitState) {
  const waitMs = retryAfterMs === null ? null : Number(retryAfterMs);
  return { kind: 'refused' as const, reason, scope: scope as 'key' | 'tenant', retryAfterMs: waitMs, limits };
}
