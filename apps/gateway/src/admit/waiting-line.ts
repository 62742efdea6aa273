/** Nobody is told to wait for longer because others wait, but for the jitter. */
const MAX_LINE_MS = 60_000;
/**
 * Of the time in the line: who is told by several gateways, each with a line of its own, does not come at the same
 * moment. Who is beyond the end of the line may have all of it, as they share one place.
 */
const MAX_JITTER_PART = 0.25;
const MAX_JITTER_MS = 5_000;
const MAX_LINES = 10_000;

/** Who waits for what, and how it passes. */
export interface Wait {
  /** The limit, and whose it is: those of one line are in each other's way. */
  line: string;
  /** When the same request would pass if nobody else came. */
  exactMs: number;
  /** How long after one of the line the next can pass. */
  everyMs: number;
}

/**
 * What those are told who are refused by the same limit: each a place behind those that were told before, or all would
 * come back at the same moment, and all but one be refused again. Who is alone is told the exact time; nobody is told
 * an earlier one, and the line adds a minute and the jitter at the most. Who comes back too early takes another place,
 * and is told so.
 *
 * A line a process, not in the store: a refusal leaves no trace there, and one that did would cost each refused request
 * a write. With n gateways a line is n times too short, and a client may be refused some n times more.
 */
export class WaitingLines {
  /** By line, when the next place is that nobody was told of. */
  private readonly nextMs = new Map<string, number>();

  constructor(private readonly random: () => number = Math.random) {}

  /** Milliseconds to wait. */
  take({ line, exactMs, everyMs }: Wait, nowMs: number): number {
    const first = nowMs + exactMs;
    const last = Math.max(first, nowMs + MAX_LINE_MS);
    const own = Math.max(first, this.nextMs.get(line) ?? 0);
    const place = Math.min(own, last);
    // Set anew, it is the youngest of the map.
    this.nextMs.delete(line);
    if (this.nextMs.size >= MAX_LINES) this.nextMs.delete(this.nextMs.keys().next().value!);
    this.nextMs.set(line, place + everyMs);
    const mostMs = own > last ? MAX_JITTER_MS : Math.min((place - first) * MAX_JITTER_PART, MAX_JITTER_MS);
    return place + mostMs * this.random() - nowMs;
  }
}
