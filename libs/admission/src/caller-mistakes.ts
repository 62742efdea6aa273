import type { AdmitRequest, Limits, LookRequest, Settlement } from './admission-store';

/** The maximum tokens of one request. Keeps the arithmetic of the buckets within a bigint. */
const MAX_TOKENS = 100_000_000_000;
const MAX_LIMIT = 1_000_000_000_000;

/** Finds what no correct caller sends before the call, so that it fails alone and not the whole call. */
export function admitMistake(request: AdmitRequest): RangeError | undefined {
  const { draft, promptTokens, wantOutputTokens, minOutputTokens, promptFemtos, outputFemtosPerToken } = request;
  if (!isTokens(promptTokens) || !isTokens(wantOutputTokens) || !isTokens(minOutputTokens)) {
    return new RangeError(`${draft.id}: token counts must be whole numbers from 0 to ${MAX_TOKENS}`);
  }
  if (promptFemtos < 0n || outputFemtosPerToken < 0n) return new RangeError(`${draft.id}: a price below zero`);
  if (minOutputTokens > wantOutputTokens || (minOutputTokens === 0 && wantOutputTokens > 0)) {
    return new RangeError(`${draft.id}: minOutputTokens must be from 1 to wantOutputTokens`);
  }
  if (!areLimits(request.keyLimits) || !areLimits(request.tenantLimits)) {
    return new RangeError(`${draft.id}: limits must be whole numbers from 1 to ${MAX_LIMIT}`);
  }
  return undefined;
}

export function lookMistake({ keyId, keyLimits, tenantLimits }: LookRequest): RangeError | undefined {
  if (areLimits(keyLimits) && areLimits(tenantLimits)) return undefined;
  return new RangeError(`${keyId}: limits must be whole numbers from 1 to ${MAX_LIMIT}`);
}

export function settleMistake({ event }: Settlement): RangeError | undefined {
  if (!/^\d{1,30}$/.test(event.costNanos)) return new RangeError(`${event.id}: "${event.costNanos}" is not a cost`);
  if (!isTokens(event.promptTokens) || !isTokens(event.completionTokens)) {
    return new RangeError(`${event.id}: token counts must be whole numbers from 0 to ${MAX_TOKENS}`);
  }
  if (!/^\d{4}-\d{2}-\d{2}T/.test(event.endedAt)) return new RangeError(`${event.id}: endedAt is not a time`);
  return undefined;
}

function isTokens(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value <= MAX_TOKENS;
}

function areLimits({ requestsPerMinute, tokensPerMinute, concurrency }: Limits): boolean {
  return isLimit(requestsPerMinute) && isLimit(tokensPerMinute) && isLimit(concurrency);
}

function isLimit(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= MAX_LIMIT;
}
