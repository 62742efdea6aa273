import {
  isId,
  isInstant,
  MAX_TOKEN_COUNT,
  type InferenceKind,
  type Outcome,
  type UsageEvent,
} from '@tollgate/contracts';
import { isName } from '../record/request-life';

/** The range of the `bigint` columns. */
const MAX_NANOS = 2n ** 63n - 1n;
/** Like `parsePrice` of the contracts: 1,000,000 per million tokens. */
const MAX_PRICE = 10n ** 15n;
/** A number of fewer digits is below both maxima. */
const SURELY_LESS_CHARS = 16;
/** An event that ends later than this from now comes from a wrong clock. It would be debited in a far month. */
const MAX_CLOCK_AHEAD_MS = 24 * 60 * 60 * 1000;

const KINDS = new Set<InferenceKind>(['chat', 'completion', 'embedding']);
const OUTCOMES = new Set<Outcome>(['complete', 'client_closed', 'upstream_error', 'credit_ended', 'expired']);
const DIGITS = /^\d{1,19}$/;

/**
 * The reason why `value` is not a valid usage event, or null if it is. Hand-written instead of using a validation
 * library, because it runs for every event and costs a twentieth (class-validator takes as long as all the database
 * work). Unknown properties are ignored, because a newer gateway may send more.
 */
export function validateUsageEvent(value: unknown, nowMs = Date.now()): string | null {
  if (!isObject(value)) return 'not an object';
  const event = value as { [K in keyof UsageEvent]?: unknown };
  if (!isId('req', event.id)) return 'id: not a request id';
  if (!isId('ten', event.tenantId)) return 'tenantId: not a tenant id';
  if (!isId('key', event.keyId)) return 'keyId: not a key id';
  if (!isName(event.model)) return 'model: not a name';
  if (!KINDS.has(event.kind as InferenceKind)) return 'kind: unknown';
  if (!OUTCOMES.has(event.outcome as Outcome)) return 'outcome: unknown';
  if (typeof event.stream !== 'boolean') return 'stream: not a boolean';
  if (typeof event.estimated !== 'boolean') return 'estimated: not a boolean';
  return (
    validateTokens(event) ??
    validatePrice(event.price) ??
    validateMoney(event) ??
    validateBudgets(event.defaultBudgets) ??
    validateTimes(event, nowMs)
  );
}

function validateTokens(event: Record<string, unknown>): string | null {
  for (const name of ['promptTokens', 'cachedTokens', 'completionTokens']) {
    const count = event[name];
    if (!Number.isInteger(count) || (count as number) < 0 || (count as number) > MAX_TOKEN_COUNT)
      return `${name}: not a token count`;
  }
  if ((event['cachedTokens'] as number) > (event['promptTokens'] as number))
    return 'cachedTokens: more than promptTokens';
  const { reasoningTokens = 0, completionTokens } = event as { reasoningTokens?: number; completionTokens: number };
  return Number.isInteger(reasoningTokens) && reasoningTokens >= 0 && reasoningTokens <= completionTokens
    ? null
    : 'reasoningTokens: not a part of completionTokens';
}

function validatePrice(price: unknown): string | null {
  if (!isObject(price)) return 'price: not an object';
  if (!isName(price['version'])) return 'price.version: not a name';
  for (const name of ['inputFemtos', 'cachedInputFemtos', 'outputFemtos', 'requestNanos']) {
    if (!isAmount(price[name], MAX_PRICE)) return `price.${name}: not a price`;
  }
  return null;
}

function validateMoney(event: Record<string, unknown>): string | null {
  if (!isAmount(event['costNanos'], MAX_NANOS)) return 'costNanos: not an amount';
  if (!isAmount(event['overrunNanos'], MAX_NANOS)) return 'overrunNanos: not an amount';
  return null;
}

function validateBudgets(budgets: unknown): string | null {
  if (budgets === undefined) return null;
  if (!isObject(budgets)) return 'defaultBudgets: not an object';
  for (const name of ['tenantCents', 'keyCents']) {
    const cents = budgets[name];
    if (cents !== undefined && !(Number.isSafeInteger(cents) && (cents as number) >= 0))
      return `defaultBudgets.${name}: not an amount`;
  }
  return null;
}

function validateTimes(event: Record<string, unknown>, nowMs: number): string | null {
  for (const name of ['startedAt', 'endedAt']) if (!isTime(event[name])) return `${name}: not a time`;
  return Date.parse(event['endedAt'] as string) > nowMs + MAX_CLOCK_AHEAD_MS ? 'endedAt: in the future' : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A decimal string of digits alone, at most `max`. */
function isAmount(value: unknown, max: bigint): value is string {
  if (typeof value !== 'string' || !DIGITS.test(value)) return false;
  return value.length < SURELY_LESS_CHARS || BigInt(value) <= max;
}

/** From the year 2000 to 2999. Each instant has one text, by which events are summed by the hour. */
function isTime(value: unknown): value is string {
  return isInstant(value) && value.startsWith('2');
}
