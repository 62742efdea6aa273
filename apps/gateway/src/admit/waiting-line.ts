import { LRUCache } from 'lru-cache';

/** The longest wait that the line gives, without the jitter. If the limit's own wait is longer, that one is given. */
const MAX_LINE_MS = 60_000;
/**
 * Jitter, as a part of the time in the line: several gateways have separate lines, and their clients should not return
 * at the same moment. Clients beyond the end of the line share one place, so they get the whole jitter.
 */
const MAX_JITTER_PART = 0.25;
const MAX_JITTER_MS = 5_000;
const MAX_LINES = 10_000;

/** A wait for one limit. */
export interface Wait {
  /** The limit and its owner. Requests of one line compete with each other. */
  line: string;
  /** Time until the request would pass if no other came. */
  exactMs: number;
  /** Time from one request of the line to the next that can pass. */
  everyMs: number;
}

/**
 * Spreads the retries of requests that the same limit refused: `Retry-After` gives each a place behind those that were
 * refused before. If all returned at the same moment, all but one would be refused again. A single client gets the
 * exact time, and no client gets an earlier one. The line adds at most a minute and the jitter. A client that returns
 * too early gets another place.
 *
 * The line is in this process, not in the store: a refusal writes nothing there, and a line would cost each refused
 * request a write. With n gateways a line is n times too short, and a client may be refused n times more often.
 */
export class WaitingLines {
  /** The next free place of each line, in ms. */
  private readonly nextMs = new LRUCache<string, number>({ max: MAX_LINES });

  constructor(private readonly random: () => number = Math.random) {}

  /** Milliseconds to wait. */
  take({ line, exactMs, everyMs }: Wait, nowMs: number): number {
    // All from now on: adding the clock and subtracting it again could make an exact second longer, by rounding.
    const lastMs = Math.max(exactMs, MAX_LINE_MS);
    const ownMs = Math.max(exactMs, (this.nextMs.get(line) ?? 0) - nowMs);
    const placeMs = Math.min(ownMs, lastMs);
    this.nextMs.set(line, nowMs + placeMs + everyMs);
    const mostMs = ownMs > lastMs ? MAX_JITTER_MS : Math.min((placeMs - exactMs) * MAX_JITTER_PART, MAX_JITTER_MS);
    return placeMs + mostMs * this.random();
  }
}
