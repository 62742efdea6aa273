import { ceilDiv, FEMTOS_PER_NANO, type UsageEvent } from '@tollgate/contracts';
import type { AdmitRequest, Progress, Refusal } from '../admission-store';

export const MINUTE_US = 60_000_000;

export interface ModelHold {
  request: AdmitRequest;
  state: 'pending' | 'settled';
  holdNanos: bigint;
  outputTokens: number;
  deadlineMs: number;
  progressedMs: number;
  delivered: Progress['delivered'];
  costNanos: bigint;
  unconfirmedSinceMs: number;
  event: UsageEvent | null;
}

/** Of a tenant or a key. */
export interface Account {
  month: string;
  spentNanos: bigint;
  requestsUs: number;
  tokensUs: number;
}

/** The tenant's credit, or a budget: what is not spent, and what running requests hold of it. */
export interface Purse {
  name: 'credit' | 'budget';
  scope: 'key' | 'tenant';
  spendable: bigint;
  held: bigint;
}

/** The output tokens that all purses grant, or the refusal: reason, scope, wait. `purses` in the order in which they refuse. */
export function grant(
  request: AdmitRequest,
  purses: readonly Purse[],
): number | [Refusal, 'key' | 'tenant', (number | null)?] {
  const { wantOutputTokens, minOutputTokens, boundIsExact } = request;
  const all = costOf(request, wantOutputTokens);
  if (all === 0n) return wantOutputTokens;
  if (!boundIsExact && purses.some(({ spendable, held }) => all > spendable - held)) return ['bound', 'tenant'];
  const empty = purses.find(({ spendable }) => costOf(request, Math.min(1, wantOutputTokens)) > spendable);
  if (empty) return [empty.name === 'credit' ? 'credit_exhausted' : 'budget_reached', empty.scope];
  const target = Math.min(...purses.map(({ spendable }) => afford(request, spendable)));
  const least = Math.min(minOutputTokens, target);
  const inTheWay = purses.find(({ spendable, held }) => afford(request, spendable - held) < least);
  if (inTheWay) return ['credit_held', inTheWay.scope, 1000];
  return Math.min(target, ...purses.map(({ spendable, held }) => afford(request, spendable - held)));
}

export function costOf({ promptFemtos, outputFemtosPerToken }: AdmitRequest, outputTokens: number): bigint {
  return ceilDiv(promptFemtos + BigInt(outputTokens) * outputFemtosPerToken, FEMTOS_PER_NANO);
}

/** By trying: the definition itself. At most what is wanted; −1 for not even the prompt. */
function afford(request: AdmitRequest, nanos: bigint): number {
  let tokens = request.wantOutputTokens;
  while (tokens >= 0 && costOf(request, tokens) > nanos) tokens--;
  return tokens;
}

/** How far an amount moves the instant at which a bucket is full. */
export function bucketUs(amount: number, perMinute: number): number {
  return Math.floor((Math.min(amount, perMinute) * MINUTE_US) / perMinute);
}

/** What is left in a bucket that is full in `usedUs`. */
export function bucketLeft(usedUs: number, perMinute: number): number {
  return Math.floor((Math.max(0, MINUTE_US - usedUs) * perMinute) / MINUTE_US);
}
