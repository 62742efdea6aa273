/**
 * Compares the books with the counters of the engines behind the backends, by the hour (UTC). Engines count tokens when
 * they process them, and the books when a request has ended. Some work is never charged. The books therefore give a
 * range, and an engine's count is inside it or not.
 */

/** The backend of a usage event without one: its gateway died before it could record it. */
export const UNKNOWN_BACKEND = 'unknown';

/** The maximum tokens of an hour that a backend may have processed beyond what is charged. */
export interface UnbilledWork {
  /** Like `UsageEvent.backend`. */
  backend: string;
  /** The beginning of the hour; ISO 8601 UTC. */
  hour: string;
  promptTokens: number;
  completionTokens: number;
}

/** The maximum number of lines in one report of unbilled work. */
export const MAX_UNBILLED_LINES = 1_000;

/** The maximum number of hours that a comparison covers. Older ones are deleted. */
export const MAX_COMPARED_HOURS = 744;

/**
 * - `agrees`: the count is in the range.
 * - `unclear`: in the range only with work that requests were not charged for, which only the engine can count.
 * - `drifts`: outside any range.
 * - `not_observed`: the engine was not sampled at both ends of the hour.
 * - `running`: the hour, or a request that began in it, has not ended.
 */
export type BackendVerdict = 'agrees' | 'unclear' | 'drifts' | 'not_observed' | 'running';

/** One kind of tokens of one engine in one hour. */
export interface BackendTokens {
  engine: number;
  /** The tokens of requests that ended in the hour. */
  booked: number;
  /**
   * The range that the books explain: the minimum and maximum of the engine's count, with requests across an end of the
   * hour, but without `unbilled`.
   */
  least: number;
  most: number;
  /** The maximum of additional tokens: cancelled and refused requests, attempts at several backends, dead gateways. */
  unbilled: number;
  /** The unexplained tokens. Above 0 the engine processed more than is in the books (underbilling), below 0 less. */
  drift: number;
  /** `drift` as a share of the larger side, from -1 to 1. */
  driftRatio: number;
  verdict: BackendVerdict;
}

export interface BackendHour {
  /** The engine: the URL of its metrics page, without query. */
  engine: string;
  /** The backends whose tokens it counts. */
  backends: string[];
  /** The beginning of the hour; ISO 8601 UTC. */
  hour: string;
  /** Requests booked in the hour. */
  requests: number;
  /** How many of them had their tokens counted by the gateway. */
  estimatedRequests: number;
  /** How often the engine restarted in the hour. Its counts since the sample before are unknown. */
  restarts: number;
  prompt: BackendTokens;
  generation: BackendTokens;
}

/** The longest name of a backend: origin and base path of its URL. */
export const MAX_BACKEND_NAME_CHARS = 256;

/** A backend that an operator took out of service. */
export interface DrainedBackend {
  backend: string;
  /** ISO 8601 UTC. */
  drainedAt: string;
}
