import { Silence } from './silence';

/** Failures in a row that open the breaker. */
const FAILURES_IN_A_ROW = 5;
/** At least this many calls in a window, at least half of them failed, open it too. */
const MIN_WINDOW_CALLS = 20;
const WINDOW_MS = 10_000;
const FIRST_OPEN_MS = 1_000;
const MAX_OPEN_MS = 60_000;
/** The longest pause that a backend gets after it asked for one. */
const MAX_REST_MS = 60_000;
/** A probe that takes longer, such as a long plain answer, keeps no other call from being one. */
const PROBE_PATIENCE_MS = 10_000;

/** The result of a call for its backend. `unreachable`: no connection could be opened. */
export type CallResult = 'succeeded' | 'failed' | 'unreachable';

/**
 * The circuit breaker of one backend and model, and the pauses that they ask for. It has no timer and creates no object
 * per call; times are by `performance.now()`. A library (cockatiel, opossum) wraps each call in promises, and
 * opossum in a timer.
 *
 * States:
 * - closed: calls go through. The breaker opens after five failures in a row, after failures of half of the calls of
 *   a window, or after one connection that cannot be opened.
 * - open: no calls for 1 s, doubled after each failed probe up to 60 s.
 * - half-open: after that time one call is the probe. Its success closes the breaker. If it has no result after 10 s,
 *   or after the time that the breaker was open, another call is a probe too.
 *
 * While the backend is unreachable no call is the probe, as it would wait for the connection: `reached` and
 * `stillUnreachable` tell what a connection in the background found (reachability.ts).
 */
export class Breaker {
  private inARow = 0;
  private windowSinceMs = 0;
  private calls = 0;
  private failures = 0;
  /** When a probe may be made. 0: closed. */
  private probeAtMs = 0;
  private openMs = FIRST_OPEN_MS;
  private restUntilMs = 0;
  /** When the last probe without a result began. 0: there is none. */
  private probeSinceMs = 0;
  /** The last connection could not be opened. */
  unreachable = false;
  /** It was not refused but timed out: a call would wait for as long. */
  isSlowToRefuse = false;
  readonly silence = new Silence();

  get isOpen(): boolean {
    return this.probeAtMs > 0;
  }

  get state(): 'closed' | 'open' | 'half_open' {
    return this.probeAtMs === 0 ? 'closed' : this.probeSinceMs > 0 ? 'half_open' : 'open';
  }

  /** Whether a call may go through now. */
  allows(nowMs: number): boolean {
    return this.probeAtMs === 0 || this.mayProbe(nowMs);
  }

  /** The time until the next probe. 0: a call may go through. */
  waitMs(nowMs: number): number {
    return this.probeAtMs === 0 ? 0 : Math.max(0, this.probeAtMs - nowMs);
  }

  /** It answered 429, or said when to come back. The longest of several pauses counts. */
  rest(seconds: number, nowMs: number): void {
    this.restUntilMs = Math.max(this.restUntilMs, nowMs + Math.min(seconds * 1_000, MAX_REST_MS));
  }

  /** The rest of that pause. 0: there is none. */
  restMs(nowMs: number): number {
    return Math.max(0, this.restUntilMs - nowMs);
  }

  /** A call begins. Returns true if it is a probe. The caller passes this on to `ended` or `abandoned`. */
  begin(nowMs: number): boolean {
    this.silence.began(nowMs);
    if (this.probeAtMs === 0 || !this.mayProbe(nowMs)) return false;
    this.probeSinceMs = nowMs;
    return true;
  }

  /** A call ended without a result: its client left. */
  abandoned(wasProbe: boolean): void {
    if (wasProbe) this.probeSinceMs = 0;
  }

  /** Returns true if this result opened the breaker, or keeps it open as unreachable: a background probe is due. */
  ended(result: CallResult, wasProbe: boolean, nowMs: number): boolean {
    if (this.probeAtMs > 0) return this.endedWhileOpen(result, wasProbe, nowMs);
    if (nowMs - this.windowSinceMs > WINDOW_MS) {
      this.windowSinceMs = nowMs;
      this.calls = this.failures = 0;
    }
    this.calls += 1;
    if (result === 'succeeded') {
      this.inARow = 0;
      return false;
    }
    this.inARow += 1;
    this.failures += 1;
    this.unreachable = result === 'unreachable';
    const isHalf = this.calls >= MIN_WINDOW_CALLS && this.failures * 2 >= this.calls;
    if (!this.unreachable && this.inARow < FAILURES_IN_A_ROW && !isHalf) return false;
    this.probeAtMs = nowMs + this.openMs;
    return true;
  }

  /** A connection in the background was opened: the next call is the probe. */
  reached(): void {
    this.unreachable = false;
  }

  /** The tries do not become rarer: they cost a connection each, and nobody is served until one finds the backend. */
  stillUnreachable(nowMs: number): void {
    this.probeAtMs = nowMs + FIRST_OPEN_MS;
  }

  private endedWhileOpen(result: CallResult, wasProbe: boolean, nowMs: number): boolean {
    // Calls that began before the breaker opened say nothing new, except that there is no connection either.
    if (!wasProbe) {
      if (result !== 'unreachable' || this.unreachable) return false;
      return (this.unreachable = true);
    }
    this.probeSinceMs = 0;
    if (result === 'succeeded') {
      this.probeAtMs = 0;
      this.openMs = FIRST_OPEN_MS;
      this.inARow = this.calls = this.failures = 0;
      return false;
    }
    this.unreachable = result === 'unreachable';
    this.openLonger(nowMs);
    return true;
  }

  private mayProbe(nowMs: number): boolean {
    if (this.unreachable || nowMs < this.probeAtMs) return false;
    return this.probeSinceMs === 0 || nowMs - this.probeSinceMs >= Math.max(PROBE_PATIENCE_MS, this.openMs);
  }

  private openLonger(nowMs: number): void {
    this.openMs = Math.min(this.openMs * 2, MAX_OPEN_MS);
    this.probeAtMs = nowMs + this.openMs;
  }
}
