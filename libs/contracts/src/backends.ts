/**
 * Evidence from outside: what the engines behind the backends say that they did, beside what the books say, by the hour
 * (UTC). Engines count tokens when they work on them, the books when a request has ended, and some work is never
 * charged; so the books give a range, and an engine's count agrees with it or does not.
 */

/** Where a usage event names no backend: its gateway died before it could be told. */
export const UNKNOWN_BACKEND = 'unknown';

/** Up to so many tokens a backend may have worked on beyond what is charged, in an hour. */
export interface UnbilledWork {
  /** As `UsageEvent.backend`. */
  backend: string;
  /** Beginning of the hour; ISO 8601 UTC. */
  hour: string;
  promptTokens: number;
  completionTokens: number;
}

/** So many lines one report of unbilled work may have. */
export const MAX_UNBILLED_LINES = 1_000;

/** So many hours back the comparison may go. */
export const MAX_COMPARED_HOURS = 744;

/**
 * `agrees`; `unclear`: only with the work that requests were not charged for, whose amount nobody but the engine knows;
 * `drifts`: by more than anything explains; `not_observed`: the engine was not sampled at both ends of the hour;
 * `running`: the hour, or what began in it, has not ended.
 */
export type BackendVerdict = 'agrees' | 'unclear' | 'drifts' | 'not_observed' | 'running';

/** One kind of tokens of one engine in one hour. */
export interface BackendTokens {
  engine: number;
  /** Of the requests that ended in the hour. */
  booked: number;
  /**
   * What the books explain: at least so many the engine should have counted, and at most so many (with requests that
   * ran over an end of the hour, but without `unbilled`).
   */
  least: number;
  most: number;
  /** In addition at most: cancelled and refused requests, attempts at several backends, requests whose gateway died. */
  unbilled: number;
  /** What nothing explains: above 0 the engine worked more than the books know (underbilling), below 0 less. */
  drift: number;
  /** `drift` as a part of the larger of both sides, from -1 to 1. */
  driftRatio: number;
  verdict: BackendVerdict;
}

export interface BackendHour {
  /** The engine: its metrics page, without query. */
  engine: string;
  /** The backends whose work it counts. */
  backends: string[];
  /** Beginning of the hour; ISO 8601 UTC. */
  hour: string;
  /** Requests booked in the hour. */
  requests: number;
  /** Of them those whose tokens were counted by us. */
  estimatedRequests: number;
  /** The engine began anew in the hour so often: what it had counted since the sample before is not known. */
  restarts: number;
  prompt: BackendTokens;
  generation: BackendTokens;
}
