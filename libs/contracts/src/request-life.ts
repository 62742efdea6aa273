// What `tollgate explain` shows of a request besides its usage. Nothing here is content of a request.

/** Requests per minute, tokens per minute, requests at once. */
export type LimitNumbers = readonly [requestsPerMinute: number, tokensPerMinute: number, concurrency: number];

/** A backend that was asked and did not serve the request, or broke off. */
export interface FailedAttempt {
  /** Like `UsageEvent.backend`. Absent: our own process ended the answer. */
  backend?: string;
  why: 'refused' | 'too_large' | 'busy' | 'timeout' | 'stopped' | 'failed';
  /** The HTTP status that it answered with. */
  status?: number;
  /** The code of a failed connection, such as ECONNREFUSED. */
  code?: string;
}

/**
 * The maximum of attempts that a record has: if more failed, the first ones and the last one. A request without
 * fallbacks has fewer.
 */
export const MAX_FAILED_ATTEMPTS = 4;

/** How a served request ran. Part of its usage event; absent where a gateway died before it could tell. */
export interface RequestLife {
  /** The limits in force at its admission. */
  key: LimitNumbers;
  tenant: LimitNumbers;
  /** What was held at its admission, decimal string. */
  heldNanos: string;
  /** What was held at its end, decimal string. Absent: the same. */
  endNanos?: string;
  /** How often the hold was extended. Absent: never. */
  extensions?: number;
  /** From its admission to its first output, of a stream. */
  firstMs?: number;
  /** Attempts that failed, in order; the last one may have broken off during the answer. Absent: none. */
  failed?: readonly FailedAttempt[];
  /** The model that was asked for. Absent: it served. Otherwise a fallback did. */
  asked?: string;
  /**
   * The admission store did not answer at its end, so its stream ended with an error, and it was settled when the store
   * was back. Absent: it was settled before its end.
   */
  late?: true;
}

/**
 * - `requests`, `tokens`, `concurrency`: a limit of the key or the tenant.
 * - `invalid_requests`: the key sent too many invalid requests.
 * - `body_memory`: request bodies or unread answers of the key or the tenant took too much memory.
 * - `budget`, `credit`, `held`, `suspended`: the money of the tenant, or its status.
 * - `key_revoked`, `key_expired`, `no_profile`: the key itself. A former secret of a rotated key has
 *   expired, or is revoked if its rotation ended it at once.
 */
export const REFUSED_BY = [
  'requests',
  'tokens',
  'concurrency',
  'invalid_requests',
  'body_memory',
  'budget',
  'credit',
  'held',
  'suspended',
  'key_revoked',
  'key_expired',
  'no_profile',
] as const;

/** What refused a request. Absent fields do not apply, or are unknown. */
export interface RefusedBy {
  what: (typeof REFUSED_BY)[number];
  scope?: 'key' | 'tenant';
  /** The limit as it was: requests or tokens per minute, or requests at once. */
  limit?: number;
  /** What was left of it. */
  remaining?: number;
  /** The tokens that the request needed: the bound of its prompt and its output. */
  needs?: number;
  /** ISO 8601 UTC: from when on such a request would be admitted. Absent: waiting does not help, or nobody knows. */
  until?: string;
}

/**
 * A request of a known key that has no usage: it was refused, it failed before any output, or its client left before
 * that.
 */
export interface RefusedRequest {
  id: string;
  tenantId: string;
  keyId: string;
  callerRequestId?: string;
  /** The time of the answer; ISO 8601 UTC, milliseconds. */
  at: string;
  /** The error code of its answer; `client_closed`: its client left. */
  code: string;
  /** The model that was asked for, also one that does not exist. Absent: its body was not read, or names none. */
  model?: string;
  /** The parameter that was refused, as its answer names it. */
  param?: string;
  by?: RefusedBy;
  /** What was held until it failed, decimal string. Absent: nothing. */
  heldNanos?: string;
  failed?: readonly FailedAttempt[];
}

/** A name that a model could have. Another text in its place is not kept: it may be anything. */
export const ASKED_MODEL = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
/** A parameter that is kept: the path of a field, such as `messages[0].role`. */
export const REFUSED_PARAM = /^[A-Za-z_][\w.[\]-]{0,99}$/;

/** The maximum of refused requests in one report. */
export const MAX_REFUSED_IN_REPORT = 200;
/** They are kept for this time. */
export const REFUSED_KEPT_DAYS = 7;
/** At most this many of a minute are kept: of a tenant, and of all. */
export const MAX_REFUSED_PER_MINUTE = { tenant: 50, all: 200 } as const;
/** An explanation shows the newest ones of a name. */
export const MAX_EXPLAINED = 10;
