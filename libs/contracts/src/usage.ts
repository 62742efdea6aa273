import type { InferenceKind, Outcome } from './events';
import { roundPartsToCents } from './money';
import type { PageQuery } from './page';

// What a tenant asks about its requests: each of them, and their sums over time.

/**
 * The requests of a tenant that ended in [`from`, `to`), newest end first. Absent times: no bound. ISO 8601 UTC.
 * `after`: a `nextCursor` of the same query.
 */
export interface RequestsQuery extends PageQuery {
  tenantId: string;
  from?: string;
  to?: string;
  model?: string;
  keyId?: string;
  outcome?: Outcome;
  /** The `x-request-id` that callers chose: of the newest 1,000 requests with it, the requests of the tenant. */
  callerRequestId?: string;
}

export type UsageGroup = 'model' | 'key' | 'day' | 'hour' | 'backend';
/** `backend` is read from the requests themselves, and so has a shorter range. */
export const MAX_BACKEND_USAGE_DAYS = 32;

/** `from` inclusive, `to` exclusive, ISO 8601 UTC. */
export interface UsageQuery {
  tenantId: string;
  from: string;
  to: string;
  groupBy: UsageGroup[];
  model?: string;
  keyId?: string;
}

export interface UsageNumbers {
  requests: number;
  /** A part of them: the backend broke off, the credit ended, or the gateway died. */
  failed: number;
  /** Another part: the client left before the end. */
  clientClosed: number;
  promptTokens: number;
  /** A part of promptTokens. */
  cachedTokens: number;
  completionTokens: number;
  /** A part of completionTokens. */
  reasoningTokens: number;
  totalTokens: number;
  /** Whole cents. The cents of the groups add up exactly to the total. */
  costCents: number;
  /** Decimal string. */
  costNanos: string;
  /** Requests whose tokens the gateway counted: no usage was reported, or the answer broke off. Absent: none. */
  estimatedRequests?: number;
}

/**
 * Group fields: `model`, `key` (the key's id), `day` (YYYY-MM-DD), `hour` (ISO 8601 at the full hour), `backend` (null:
 * unknown).
 */
export type UsageGroupRow = UsageNumbers &
  Partial<Record<Exclude<UsageGroup, 'backend'>, string>> & { backend?: string | null };

export interface UsageSummary {
  from: string;
  to: string;
  totals: UsageNumbers;
  groups: UsageGroupRow[];
}

/** The width of a point. `all`: one point for the whole range. */
export type UsageStep = 'hour' | 'day' | 'all';

/**
 * Usage over time. `from` is moved back and `to` forward to whole steps (`all`: whole hours), so that each point is
 * whole. A range of at most MAX_SERIES_DAYS of the step.
 */
export interface UsageSeriesQuery {
  tenantId: string;
  from: string;
  to: string;
  step: UsageStep;
  /** Absent: one series. */
  by?: 'model' | 'key';
  /** How many names get their own series, by the highest cost; default 10, at most 200. */
  top?: number;
  model?: string;
  keyId?: string;
}

/** The longest range of a series by its step, in days. */
export const MAX_SERIES_DAYS = { hour: 32, day: 400, all: 400 } as const;
export const MAX_SERIES_NAMES = 200;
/** More points are refused. */
export const MAX_SERIES_POINTS = 10_000;

type PointNumbers = 'requests' | 'failed' | 'clientClosed' | 'promptTokens' | 'cachedTokens' | 'completionTokens';

/** The requests that ended in one step. Steps without requests have no point. */
export interface UsagePoint extends Pick<UsageNumbers, PointNumbers | 'costNanos'> {
  /** The beginning of the step, or of the range; ISO 8601 UTC. */
  at: string;
  /** A model or key id. Null: all names beyond `top`, or all requests if the query names no `by`. */
  name: string | null;
}

export interface UsageSeries {
  /** The range as it was widened; ISO 8601 UTC. */
  from: string;
  to: string;
  /** The names with their own series, highest cost first. */
  names: string[];
  /** Ascending by time, then by name, the others last. */
  points: UsagePoint[];
}

/**
 * Requests of a key in an hour that got an error: refused ones, and those that failed before their answer was whole.
 * They are in no ledger, as a rule. A gateway counts them by the code of the error.
 */
export interface RefusalCount {
  tenantId: string;
  keyId: string;
  /** The beginning of the hour; ISO 8601 UTC. */
  hour: string;
  /** An error code of the inference API. */
  code: string;
  /** All of the hour so far, in this process. */
  requests: number;
}

/** The maximum number of counts in one report. */
export const MAX_REFUSAL_COUNTS = 1_000;
/** Counts are kept for this time. */
export const REFUSALS_KEPT_DAYS = 90;

export interface RefusalPoint {
  /** The beginning of the step, or of the range; ISO 8601 UTC. */
  at: string;
  code: string;
  requests: number;
}

/** The most rows in a page of an export: less than 700 KB, which fits into a message. */
export const MAX_EXPORT_ROWS = 1_000;

/**
 * Usage of requests that ended in [`from`, `to`), ISO 8601 UTC, of all tenants or of one. `request`: a row for each
 * request. `hour`: a row for each tenant, hour, model and key, from the rollups; both times are full hours then.
 * `after`: the `nextCursor` of the same query. Rows are in an order of the store, in which new ones may come before the
 * cursor: only a range that is over, and whose usage has arrived, is exported as a whole.
 */
export interface UsageExportQuery {
  from: string;
  to: string;
  step: 'request' | 'hour';
  tenantId?: string;
  model?: string;
  keyId?: string;
  after?: string;
  limit?: number;
}

export interface ExportedUsage {
  /** The request; null: a row of several. */
  id: string | null;
  /** Start and end of the request or of the hour. ISO 8601 UTC. */
  from: string;
  to: string;
  tenantId: string;
  keyId: string;
  model: string;
  /** The next three are null for a row of several. */
  kind: InferenceKind | null;
  outcome: Outcome | null;
  /** The backend that served it; null if unknown, too. */
  backend: string | null;
  requests: number;
  /** A part of them: the backend broke off, the credit ended, or the gateway died. */
  failed: number;
  /** Another part: the client left before the end. */
  clientClosed: number;
  /** Requests whose tokens the gateway counted. */
  estimated: number;
  promptTokens: number;
  /** A part of promptTokens. */
  cachedTokens: number;
  completionTokens: number;
  /** A part of completionTokens. */
  reasoningTokens: number;
  /** Decimal string. */
  costNanos: string;
}

/** Usage before its cost is rounded to cents. */
export type UnroundedUsage = Omit<UsageNumbers, 'costCents'>;

const SUMS = [
  ...(['requests', 'failed', 'clientClosed', 'promptTokens', 'cachedTokens', 'completionTokens'] as const),
  ...(['reasoningTokens', 'totalTokens'] as const),
];

/** Adds up parts of usage. Whole cents of the parts add up exactly to the whole cents of the total. */
export function totalOf(parts: readonly UnroundedUsage[]): { totals: UsageNumbers; parts: UsageNumbers[] } {
  const { totalCents, partCents } = roundPartsToCents(parts.map(({ costNanos }) => BigInt(costNanos)));
  const sums = Object.fromEntries(
    SUMS.map((field) => [field, parts.reduce((sum, part) => sum + part[field], 0)]),
  ) as Record<(typeof SUMS)[number], number>;
  const costNanos = String(parts.reduce((sum, part) => sum + BigInt(part.costNanos), 0n));
  const estimated = parts.reduce((sum, { estimatedRequests = 0 }) => sum + estimatedRequests, 0);
  return {
    totals: {
      ...sums,
      costCents: Number(totalCents),
      costNanos,
      ...(estimated > 0 && { estimatedRequests: estimated }),
    },
    parts: parts.map((part, index) => ({ ...part, costCents: Number(partCents[index]!) })),
  };
}
