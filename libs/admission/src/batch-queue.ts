import { UnavailableError } from '@tollgate/contracts';

const MAX_BATCH_ITEMS = 256;
/** More than a store answers in several seconds: beyond it the process is overloaded, and says so at once. */
const MAX_WAITING_ITEMS = 10_000;
const MAX_CALL_TRIES = 2;
/** What a call has at the least, however long its items have waited behind the one before: a store that answers does so far sooner. */
const LEAST_CALL_MS = 250;

/** Answers in the order of the items; an Error in the place of an item fails that one alone. */
export type BatchCall<I, O> = (items: readonly I[]) => Promise<readonly (O | Error)[]>;

export interface BatchQueueOptions<I, O> {
  /** From `push` on: who has no answer by then is refused, whatever the call still does. */
  answersWithinMs?: number;
  /** Told of what was answered after it was refused. */
  onLate?: (item: I, result: O) => void;
}

interface Waiting<I, O> {
  item: I;
  /** By performance.now(). */
  pushedMs: number;
  resolve: (result: O) => void;
  reject: (error: Error) => void;
}

/**
 * One call in flight; what gathers while it is under way goes out as the next one, in order. The first of a quiet queue waits for the end of
 * the event loop's turn, so that all that arrived in this turn go together. No timers: the call itself ends in bounded time.
 *
 * When the store does not answer, the call is tried once more (every operation may be repeated by its ids); then it is refused, and with it all that waited
 * behind it, which would otherwise wait as long again. Nor does anybody wait for two calls in full, the one that it came too late for and its own: `answersWithinMs` is counted from `push`.
 */
export class BatchQueue<I, O> {
  private waiting: Waiting<I, O>[] = [];
  private running: Promise<void> | undefined;

  constructor(
    private readonly call: BatchCall<I, O>,
    private readonly options: BatchQueueOptions<I, O> = {},
  ) {}

  push(item: I): Promise<O> {
    if (this.waiting.length >= MAX_WAITING_ITEMS) {
      return Promise.reject(new UnavailableError('the admission store is overloaded'));
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, pushedMs: performance.now(), resolve, reject });
      this.running ??= this.run();
    });
  }

  /** Returns when nothing waits and nothing is under way. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    await new Promise(setImmediate);
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MAX_BATCH_ITEMS);
      try {
        const results = await this.callInTime(batch);
        for (const [index, { resolve, reject }] of batch.entries()) {
          const result = results[index]!;
          if (result instanceof Error) reject(result);
          else resolve(result);
        }
      } catch (error) {
        const refused = error instanceof UnavailableError ? batch.concat(this.waiting.splice(0)) : batch;
        for (const { reject } of refused) reject(error as Error);
      }
    }
    this.running = undefined;
  }

  /** The oldest of the batch says when it is over. */
  private async callInTime(batch: readonly Waiting<I, O>[]): Promise<readonly (O | Error)[]> {
    const { answersWithinMs = Infinity, onLate } = this.options;
    const items = batch.map(({ item }) => item);
    const nowMs = performance.now();
    const untilMs = Math.max(batch[0]!.pushedMs + answersWithinMs, nowMs + LEAST_CALL_MS);
    const calling = this.tryCall(items, untilMs);
    if (untilMs === Infinity) return calling;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      // What came in while this process stood still is read first.
      const giveUp = () => reject(new UnavailableError('the admission store has not answered in time'));
      timer = setTimeout(() => setImmediate(giveUp), untilMs - nowMs);
    });
    try {
      return await Promise.race([calling, late]);
    } catch (error) {
      if (onLate) calling.then((results) => tell(items, results, onLate)).catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  private async tryCall(items: readonly I[], untilMs: number): Promise<readonly (O | Error)[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.call(items);
      } catch (error) {
        if (attempt >= MAX_CALL_TRIES || !(error instanceof UnavailableError) || performance.now() >= untilMs)
          throw error;
      }
    }
  }
}

function tell<I, O>(items: readonly I[], results: readonly (O | Error)[], onLate: (item: I, result: O) => void): void {
  for (const [index, item] of items.entries()) {
    const result = results[index];
    if (result !== undefined && !(result instanceof Error)) onLate(item, result);
  }
}
