import { UnavailableError } from '@tollgate/contracts';

const MAX_BATCH_ITEMS = 256;
/** More than a store answers in several seconds: beyond it the process is overloaded, and says so at once. */
const MAX_WAITING_ITEMS = 10_000;
const MAX_CALL_TRIES = 2;

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
  /** By performance.now(): refused then. */
  untilMs: number;
  /** As its time was over. */
  refused: boolean;
  resolve: (result: O) => void;
  reject: (error: Error) => void;
}

/**
 * One call in flight; what gathers while it is under way goes out as the next one, in order. The first of a quiet queue
 * waits for the end of the event loop's turn, so that all that arrived in this turn go together. The call itself ends
 * in bounded time.
 *
 * When the store does not answer, the call is tried once more (every operation may be repeated by its ids); then it is
 * refused, and with it all that waited behind it, which would otherwise wait as long again. Nor does anybody wait for
 * two calls in full, the one that it came too late for and its own: `answersWithinMs` is counted from `push`, for each
 * alone. A call is under way until the youngest of it has had its time; who waits behind it is younger, so that one's
 * time is not over before.
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
    const untilMs = performance.now() + (this.options.answersWithinMs ?? Infinity);
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, untilMs, refused: false, resolve, reject });
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
        await this.callInTime(batch);
      } catch (error) {
        const refused = error instanceof UnavailableError ? batch.concat(this.waiting.splice(0)) : batch;
        for (const { reject } of refused) reject(error as Error);
      }
      // Of no use to send.
      this.waiting.splice(0, refuseDue(this.waiting));
    }
    this.running = undefined;
  }

  /** Returns when all of the batch have their answers, or have been refused as their time was over. */
  private async callInTime(batch: readonly Waiting<I, O>[]): Promise<void> {
    const { untilMs } = batch.at(-1)!;
    const calling = this.tryCall(batch, untilMs).then((results) => this.deliver(batch, results));
    if (untilMs === Infinity) return calling;
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    const allRefused = new Promise<void>((resolve) => {
      let refused = 0;
      const refuse = () => {
        refused += refuseDue(batch, refused);
        if (refused === batch.length) resolve();
        else if (!isOver) wait();
      };
      const wait = () => {
        const leftMs = Math.ceil(batch[refused]!.untilMs - performance.now());
        // What came in while this process stood still is read first.
        timer = setTimeout(() => setImmediate(refuse), Math.max(0, leftMs));
      };
      wait();
    });
    try {
      // eslint-disable-next-line no-restricted-syntax -- the time limit is each item's own, and moves
      await Promise.race([calling, allRefused]);
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }

  private async tryCall(batch: readonly Waiting<I, O>[], untilMs: number): Promise<readonly (O | Error)[]> {
    const items = batch.map(({ item }) => item);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.call(items);
      } catch (error) {
        if (attempt >= MAX_CALL_TRIES || !(error instanceof UnavailableError) || performance.now() >= untilMs)
          throw error;
      }
    }
  }

  private deliver(batch: readonly Waiting<I, O>[], results: readonly (O | Error)[]): void {
    for (const [index, { item, refused, resolve, reject }] of batch.entries()) {
      const result = results[index]!;
      if (result instanceof Error) reject(result);
      else if (!refused) resolve(result);
      else if (result !== undefined) this.options.onLate?.(item, result);
    }
  }
}

/** Refuses those whose time is over, which are the first ones, from `start` on. How many. */
function refuseDue<I, O>(all: readonly Waiting<I, O>[], start = 0): number {
  const nowMs = performance.now();
  let end = start;
  for (; end < all.length && all[end]!.untilMs <= nowMs; end++) {
    all[end]!.refused = true;
    all[end]!.reject(new UnavailableError('the admission store has not answered in time'));
  }
  return end - start;
}
