import { ConfigError, readFields, readNumber } from './read';

/** When a fault applies: to the first `first` requests, to each `every`-th one, or to all if neither is set. */
export interface When {
  first?: number;
  every?: number;
}

/** What goes wrong, and when. A chunk is a streamed event that carries a token. Chunks are numbered from 1. */
export type FaultRule = When &
  (
    | { kind: 'status'; status: FaultStatus; retryAfterSeconds?: number }
    /** Closes the connection after `afterChunks` chunks, or in the middle of a plain body. */
    | { kind: 'cut'; afterChunks?: number }
    /**
     * Without `afterChunks`, reads the request and never answers. With it, stops sending after that many chunks, or in
     * the middle of a plain body.
     */
    | { kind: 'hang'; afterChunks?: number }
    /** The chunk `atChunk` (1 by default) is not JSON; later chunks are correct. A plain body is not JSON. */
    | { kind: 'malformed'; atChunk?: number }
    | { kind: 'missingUsage' }
    /** Multiplies every number of `usage` by `factor`, rounded up. */
    | { kind: 'overrun'; factor: number }
    /** Delays the status line by `delayMs`. */
    | { kind: 'slowHeaders'; delayMs: number }
  );

export type FaultStatus = (typeof FAULT_STATUSES)[number];
export const FAULT_STATUSES = [400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504] as const;

/** The faults of one request. */
export interface FaultPlan {
  status: FaultStatus | null;
  retryAfterSeconds: number | null;
  /** Chunks after which the connection closes; null: never. */
  cutAfterChunks: number | null;
  hangSilently: boolean;
  hangAfterChunks: number | null;
  malformedChunk: number | null;
  missingUsage: boolean;
  usageFactor: number;
  headersDelayMs: number;
}

export const NO_FAULTS: FaultPlan = {
  status: null,
  retryAfterSeconds: null,
  cutAfterChunks: null,
  hangSilently: false,
  hangAfterChunks: null,
  malformedChunk: null,
  missingUsage: false,
  usageFactor: 1,
  headersDelayMs: 0,
};

const MAX_FAULTS = 16;
const MAX_COUNT = 1_000_000_000;
const MAX_DELAY_MS = 600_000;
const FIELDS: Record<FaultRule['kind'], string[]> = {
  status: ['status', 'retryAfterSeconds'],
  cut: ['afterChunks'],
  hang: ['afterChunks'],
  malformed: ['atChunk'],
  missingUsage: [],
  overrun: ['factor'],
  slowHeaders: ['delayMs'],
};
const REQUIRED = ['status', 'factor', 'delayMs'];
const RANGES: Record<string, { min: number; max: number; integer?: boolean }> = {
  retryAfterSeconds: { min: 0, max: MAX_COUNT },
  afterChunks: { min: 0, max: MAX_COUNT, integer: true },
  atChunk: { min: 1, max: MAX_COUNT, integer: true },
  factor: { min: 0, max: MAX_COUNT },
  delayMs: { min: 0, max: MAX_DELAY_MS },
  first: { min: 1, max: MAX_COUNT, integer: true },
  every: { min: 1, max: MAX_COUNT, integer: true },
};

/** Checks a list of fault rules; throws `ConfigError`. */
export function readFaults(value: unknown, path: string): FaultRule[] {
  if (!Array.isArray(value) || value.length > MAX_FAULTS)
    throw new ConfigError(path, `must be a list of at most ${MAX_FAULTS}`);
  return value.map((rule: unknown, i) => readFault(rule, `${path}.${i}`));
}

function readFault(value: unknown, path: string): FaultRule {
  const kind = readFields(value, path, null)['kind'];
  const own = Object.entries(FIELDS).find(([name]) => name === kind)?.[1];
  if (!own) throw new ConfigError(`${path}.kind`, `must be one of ${Object.keys(FIELDS).join(', ')}`);
  const fields = readFields(value, path, ['kind', 'first', 'every', ...own]);
  for (const name of own)
    if (REQUIRED.includes(name) && fields[name] === undefined) throw new ConfigError(`${path}.${name}`, 'is missing');
  for (const [name, range] of Object.entries(RANGES))
    if (fields[name] !== undefined) readNumber(fields[name], `${path}.${name}`, range);
  if (kind === 'status' && !FAULT_STATUSES.some((status) => status === fields['status'])) {
    throw new ConfigError(`${path}.status`, `must be one of ${FAULT_STATUSES.join(', ')}`);
  }
  return fields as unknown as FaultRule;
}

/**
 * The faults of the `ordinal`-th request, counted from 1. If two rules of one kind apply, the later rule wins.
 */
export function planFaults(rules: readonly FaultRule[], ordinal: number): FaultPlan {
  if (rules.length === 0) return NO_FAULTS;
  const plan = { ...NO_FAULTS };
  for (const rule of rules) {
    if (!applies(rule, ordinal)) continue;
    switch (rule.kind) {
      case 'status':
        plan.status = rule.status;
        plan.retryAfterSeconds = rule.retryAfterSeconds ?? null;
        break;
      case 'cut':
        plan.cutAfterChunks = rule.afterChunks ?? 0;
        break;
      case 'hang':
        plan.hangSilently = rule.afterChunks === undefined;
        plan.hangAfterChunks = rule.afterChunks ?? null;
        break;
      case 'malformed':
        plan.malformedChunk = rule.atChunk ?? 1;
        break;
      case 'missingUsage':
        plan.missingUsage = true;
        break;
      case 'overrun':
        plan.usageFactor = rule.factor;
        break;
      case 'slowHeaders':
        plan.headersDelayMs = rule.delayMs;
        break;
    }
  }
  return plan;
}

function applies(when: When, ordinal: number): boolean {
  if (when.first !== undefined && ordinal > when.first) return false;
  return when.every === undefined || ordinal % when.every === 0;
}
