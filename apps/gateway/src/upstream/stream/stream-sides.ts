import type { UpstreamFailure } from '../exchange/failure';
import type { ReportedUsage } from '../wire/usage-field';

/** The output that the stream may deliver before its hold must be extended (admit/stream-allowance.ts). */
export interface Allowance {
  /**
   * Takes a chunk's output. `wait`: call again after `onReady`. `capped`: the output exceeds the requested limit.
   * `ended`: no credit is left for it. `lost`: the hold no longer exists.
   * @param most an upper bound of the chunk's tokens: the bytes of its text
   * @param count counts all output including this chunk. Above its `limit` it may return any number above it
   */
  take(most: number, count: (limit: number) => number): 'granted' | 'wait' | 'capped' | 'ended' | 'lost';
  /** The tokens of output that the current hold covers, in total. */
  readonly limit: number;
  onReady: () => void;
}

/** The time until which a hold certainly lives (libs/admission/src/client/hold-deadline.ts). */
export interface Deadline {
  readonly passed: boolean;
}

/** The client's side of a response. */
export interface ClientSide {
  /** Writes the response head. Called once, before the first bytes. */
  begin(): void;
  write(latin1: string): boolean;
  onDrain(listener: () => void): void;
}

/** The output that the client has requested. */
export interface StreamOutput {
  choices: number;
  /** The tokens of a text, by the model's tokenizer. */
  countText: (text: string) => number;
  /** The last choice of an output that was cut. */
  endOfChoice: (index: number) => object;
}

/** How a stream ended. */
export interface StreamEnd {
  /** `capped`: the backend exceeded the requested limit. The answer is complete up to there. */
  outcome: 'complete' | 'capped' | 'client_closed' | 'upstream_error' | 'credit_ended' | 'hold_lost';
  /** Set if the outcome is `upstream_error`. */
  failure: UpstreamFailure | null;
  /** The backend's report on the last frames. Null: the delivered output must be counted. */
  usage: ReportedUsage;
}

/** Outcomes whose stream has a proper last chunk. */
export const PROPER_ENDS: ReadonlySet<StreamEnd['outcome']> = new Set(['complete', 'capped', 'credit_ended']);

/** The end of a stream whose backend broke off, or sent what cannot be read. `reason` is for the log only. */
export function brokenOff(reason: string): StreamEnd {
  return { outcome: 'upstream_error', failure: { kind: 'failed', reason }, usage: null };
}
