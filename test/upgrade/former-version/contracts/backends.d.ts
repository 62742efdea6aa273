// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
export declare const UNKNOWN_BACKEND = 'unknown';
export interface UnbilledWork {
  backend: string;
  hour: string;
  promptTokens: number;
  completionTokens: number;
}
export declare const MAX_UNBILLED_LINES = 1000;
export declare const MAX_COMPARED_HOURS = 744;
export type BackendVerdict = 'agrees' | 'unclear' | 'drifts' | 'not_observed' | 'running';
export interface BackendTokens {
  engine: number;
  booked: number;
  least: number;
  most: number;
  unbilled: number;
  drift: number;
  driftRatio: number;
  verdict: BackendVerdict;
}
export interface BackendHour {
  engine: string;
  backends: string[];
  hour: string;
  requests: number;
  estimatedRequests: number;
  restarts: number;
  prompt: BackendTokens;
  generation: BackendTokens;
}
