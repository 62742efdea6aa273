import { ceilDiv, FEMTOS_PER_NANO, type UsageEvent } from '@tollgate/contracts';
import {
  DEFAULT_LEASE_MS,
  type AdmitRequest,
  type Limits,
  type BucketState,
  type Progress,
  type Refusal,
} from '../admission-store';

export const MINUTE_US = 60_000_000;

export interface ModelHold {
  request: AdmitRequest;
  state: 'pending' | 'settled';
  holdNanos: bigint;
  outputTokens: number;
  admittedMs: number;
  deadlineMs: number;
  progressedMs: number;
  delivered: Progress['delivered'];
  costNanos: bigint;
  unconfirmedSinceMs: number;
  event: UsageEvent | null;
}

/** The state of a tenant or a key. */
export interface Account {
  month: string;
  spentNanos: bigint;
  requestsUs: number;
  tokensUs: number;
  /** When the buckets were last written. */
  writtenUs: number;
}

/** The tenant's credit, or a budget: what is not spent, and how much of it running requests hold. */
export interface Purse {
  name: 'credit' | 'budget';
  scope: 'key' | 'tenant';
  spendable: bigint;
  held: bigint;
}

/** The output tokens that all purses grant, or the refusal: reason, scope. `purses` is in the order of refusal. */
export function grant(request: AdmitRequest, purses: readonly Purse[]): number | [Refusal, 'key' | 'tenant'] {
  const { wantOutputTokens, minOutputTokens, boundIsExact } = request;
  const all = costOf(request, wantOutputTokens);
  // rule 4: requests that cost nothing
  if (all === 0n) return wantOutputTokens;
  // rule 5: a bound that is not exact
  if (!boundIsExact && purses.some(({ spendable, held }) => all > spendable - held)) return ['bound', 'tenant'];
  // rule 6: budget reached
  // rule 7: credit exhausted
  const empty = purses.find(({ spendable }) => costOf(request, Math.min(1, wantOutputTokens)) > spendable);
  if (empty) return [empty.name === 'credit' ? 'credit_exhausted' : 'budget_reached', empty.scope];
  // rule 8: clamped, or held by others
  const target = Math.min(...purses.map(({ spendable }) => afford(request, spendable)));
  const least = Math.min(minOutputTokens, target);
  const inTheWay = purses.find(({ spendable, held }) => afford(request, spendable - held) < least);
  if (inTheWay) return ['credit_held', inTheWay.scope];
  return Math.min(target, ...purses.map(({ spendable, held }) => afford(request, spendable - held)));
}

export function costOf({ promptFemtos, outputFemtosPerToken }: AdmitRequest, outputTokens: number): bigint {
  return ceilDiv(promptFemtos + BigInt(outputTokens) * outputFemtosPerToken, FEMTOS_PER_NANO);
}

/** Found by trying, as the definition says. At most what is wanted; −1 if not even the prompt is paid for. */
function afford(request: AdmitRequest, nanos: bigint): number {
  let tokens = request.wantOutputTokens;
  while (tokens >= 0 && costOf(request, tokens) > nanos) tokens--;
  return tokens;
}

// rule 9: bucket arithmetic
/** How far an amount moves the time at which a bucket is full. */
export function bucketUs(amount: number, perMinute: number): number {
  return Math.floor((Math.min(amount, perMinute) * MINUTE_US) / perMinute);
}

// rule 1: a clock that was ahead
/**
 * The buckets by this clock. If the clock was ahead when they were written, they have the state now that they had then.
 */
export function bucketsAt(account: Account, nowUs: number): Pick<Account, 'requestsUs' | 'tokensUs' | 'writtenUs'> {
  const aheadUs = Math.max(0, account.writtenUs - nowUs);
  return {
    requestsUs: Math.max(account.requestsUs - aheadUs, nowUs),
    tokensUs: Math.max(account.tokensUs - aheadUs, nowUs),
    writtenUs: nowUs,
  };
}

/** Buckets of a clock that was ahead are written, so that they fill from now on. */
export function readBuckets(accounts: readonly Account[], nowUs: number): void {
  for (const account of accounts) if (account.writtenUs > nowUs) Object.assign(account, bucketsAt(account, nowUs));
}

// rule 22: dates in the future
/** Dates in the future, from a clock that was ahead, count from now on. */
export function putRight(hold: ModelHold, nowMs: number): void {
  hold.unconfirmedSinceMs = Math.min(hold.unconfirmedSinceMs, nowMs);
  if (hold.progressedMs <= nowMs) return;
  hold.deadlineMs = nowMs + DEFAULT_LEASE_MS;
  hold.progressedMs = nowMs;
}

// rule 24: the expired event
/** Null if nothing was delivered: then the hold is removed. */
export function expiredEvent({ request, delivered, holdNanos, progressedMs }: ModelHold): UsageEvent | null {
  if (!delivered) return null;
  const cost = delivered.costNanos < holdNanos ? delivered.costNanos : holdNanos;
  return {
    ...request.draft,
    ...delivered,
    costNanos: String(cost),
    overrunNanos: String(delivered.costNanos - cost),
    estimated: true,
    outcome: 'expired',
    endedAt: new Date(progressedMs).toISOString(),
  };
}

export function limitsOf(of: Account, limits: Limits, nowUs: number): BucketState {
  const { requestsUs, tokensUs } = bucketsAt(of, nowUs);
  return {
    requestsRemaining: bucketLeft(requestsUs - nowUs, limits.requestsPerMinute),
    requestsResetMs: Math.ceil((requestsUs - nowUs) / 1000),
    tokensRemaining: bucketLeft(tokensUs - nowUs, limits.tokensPerMinute),
    tokensResetMs: Math.ceil((tokensUs - nowUs) / 1000),
  };
}

/** The remainder of a bucket that is full in `usedUs`. */
function bucketLeft(usedUs: number, perMinute: number): number {
  return Math.floor((Math.max(0, MINUTE_US - usedUs) * perMinute) / MINUTE_US);
}
