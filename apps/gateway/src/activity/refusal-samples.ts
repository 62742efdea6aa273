import type { RefusedRequest } from '@tollgate/contracts';
import { Counter, metrics } from '@tollgate/runtime';

/**
 * The samples kept for a key and a code in a round. Later refusals replace unsent ones at random, so the samples
 * represent the whole round.
 */
const MAX_OF_ONE = 5;
/** Longer than the time between two reports, so that a flood fills no minute of metering at its beginning. */
const ROUND_MS = 10_000;
/** In memory, also those that metering has not received yet. */
const MAX_SAMPLES = 1_000;

const dropped = new Counter({
  name: 'tollgate_refusals_not_kept_total',
  help: `Refused requests that cannot be explained one by one: more than ${MAX_OF_ONE} of a key and code in 10 s`,
  registers: [metrics],
});

interface Group {
  seen: number;
  /** How many samples of this round were taken for a report. These are not replaced. */
  taken: number;
  kept: RefusedRequest[];
}

/**
 * Keeps a sample of the refused requests of this process until metering has it. No request waits for it. A dropped
 * request costs one look into a map, because its record is not made.
 */
export class RefusalSamples {
  private groups = new Map<string, Group>();
  private roundEndsMs = 0;
  private size = 0;
  /** Taken for a report that was not received yet. */
  private unsent: RefusedRequest[] = [];

  constructor(
    private readonly maxOfOne = MAX_OF_ONE,
    private readonly maxSamples = MAX_SAMPLES,
    private readonly random = Math.random,
  ) {}

  note(keyId: string, code: string, make: () => RefusedRequest): void {
    if (performance.now() >= this.roundEndsMs) this.beginRound();
    const name = `${keyId} ${code}`;
    let group = this.groups.get(name);
    const isFull = this.size + this.unsent.length >= this.maxSamples;
    if (!group) {
      if (isFull) return dropped.inc();
      this.groups.set(name, (group = { seen: 0, taken: 0, kept: [] }));
    }
    group.seen += 1;
    if (group.taken + group.kept.length < this.maxOfOne && !isFull) {
      group.kept.push(make());
      this.size += 1;
      return;
    }
    dropped.inc();
    // Each of those seen is kept with the same probability (algorithm R).
    const place = Math.floor(this.random() * group.seen) - group.taken;
    if (place >= 0 && place < group.kept.length) group.kept[place] = make();
  }

  /** For a report. Those that are not `sent` are taken again. */
  take(): readonly RefusedRequest[] {
    for (const group of this.groups.values()) {
      this.unsent.push(...group.kept);
      group.taken += group.kept.length;
      group.kept = [];
    }
    this.size = 0;
    return [...this.unsent];
  }

  /** Metering has received the next part of the samples that were taken. */
  sent(part: readonly RefusedRequest[]): void {
    this.unsent.splice(0, part.length);
  }

  private beginRound(): void {
    this.roundEndsMs = performance.now() + ROUND_MS;
    // The samples of the last round wait for their report with those that were taken before.
    this.take();
    this.groups = new Map();
  }
}
