import { UnavailableError } from '@tollgate/contracts';
import { delay } from '@tollgate/runtime';
import { type LineOptions, refuseDue, type Waiting, WaitingLine } from './waiting-line';

const MAX_CALL_TRIES = 2;
/**
 * After a call of this many items, the next one is delayed to fill the batch, until it has as many: a call by itself
 * costs as much as 20 to 30 items. Few concurrent requests never wait.
 */
const GATHER_FROM_ITEMS = 4;
const GATHER_MS = 1;

/** Returns results in the order of the items. An Error in the place of an item fails only that item. */
export type BatchCall<I, O> = (items: readonly I[]) => Promise<readonly (O | Error)[]>;

export interface BatchQueueOptions<I, O> extends LineOptions<I> {
  /**
   * Counted from `push`. An item without a result by then is refused, whatever the call still does. If owners take
   * turns, a call of younger items may delay the refusal of an older one until it ends.
   */
  answersWithinMs?: number;
  /** Called with each result that arrives after its refusal. */
  onLate?: (item: I, result: O) => void;
}

/**
 * Keeps one call in flight. Items that gather meanwhile go out in the next call, in order. The first item of an idle
 * queue waits for the end of the event loop's turn, so all items of the turn go together. After a call of many items,
 * the next one waits a little for as many. The call itself ends in bounded time.
 * When the store does not answer, the call is repeated once; every operation may be repeated by its ids. If it fails
 * again, it is refused together with all items queued behind it, which would otherwise wait as long again.
 * No item waits for two full calls (the one in flight when it arrived, and its own): `answersWithinMs` counts from
 * `push`, for each item alone. A call lasts until its youngest item runs out of time. Items queued behind it are
 * younger still, so their time is not over before.
 */
export class BatchQueue<I, O> {
  private readonly waiting: WaitingLine<I, O>;
  private running: Promise<void> | undefined;

  constructor(
    private readonly call: BatchCall<I, O>,
    private readonly options: BatchQueueOptions<I, O> = {},
  ) {
    this.waiting = new WaitingLine(options);
  }

  push(item: I): Promise<O> {
    if (this.waiting.isFullFor(item)) {
      return Promise.reject(new UnavailableError('the admission store is overloaded'));
    }
    const untilMs = performance.now() + (this.options.answersWithinMs ?? Infinity);
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, untilMs, refused: false, resolve, reject });
      this.running ??= this.run();
    });
  }

  /** Resolves when nothing is queued and no call is in flight. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    await new Promise(setImmediate);
    while (this.waiting.length > 0) {
      const batch = this.waiting.takeBatch();
      try {
        await this.callInTime(batch);
      } catch (error) {
        const refused = error instanceof UnavailableError ? batch.concat(this.waiting.takeAll()) : batch;
        for (const { reject } of refused) reject(error as Error);
      }
      if (batch.length >= GATHER_FROM_ITEMS && this.waiting.length < batch.length) await delay(GATHER_MS);
      // Its time is over: sending it is useless.
      this.waiting.refuseDue();
    }
    this.running = undefined;
  }

  /** Resolves when every item of the batch has its result or was refused because its time was over. */
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
        // Read first what arrived while this process stood still.
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
