import { UnavailableError } from '@tollgate/contracts';

const MAX_BATCH_ITEMS = 256;
/** More than a store answers in several seconds: beyond it the process is overloaded, and says so at once. */
const MAX_WAITING_ITEMS = 10_000;
const MAX_CALL_TRIES = 2;

/** Answers in the order of the items; an Error in the place of an item fails that one alone. */
export type BatchCall<I, O> = (items: readonly I[]) => Promise<readonly (O | Error)[]>;

interface Waiting<I, O> {
  item: I;
  resolve: (result: O) => void;
  reject: (error: Error) => void;
}

/**
 * One call in flight; what gathers while it is under way goes out as the next one, in order. The first of a quiet queue waits for the end of
 * the event loop's turn, so that all that arrived in this turn go together. No timers: the call itself ends in bounded time.
 *
 * When the store does not answer, the call is tried once more (every operation may be repeated by its ids); then it is refused, and with it all that waited
 * behind it, which would otherwise wait as long again.
 */
export class BatchQueue<I, O> {
  private waiting: Waiting<I, O>[] = [];
  private running: Promise<void> | undefined;

  constructor(private readonly call: BatchCall<I, O>) {}

  push(item: I): Promise<O> {
    if (this.waiting.length >= MAX_WAITING_ITEMS) {
      return Promise.reject(new UnavailableError('the admission store is overloaded'));
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
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
        const results = await this.tryCall(batch.map(({ item }) => item));
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

  private async tryCall(items: readonly I[]): Promise<readonly (O | Error)[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.call(items);
      } catch (error) {
        if (attempt >= MAX_CALL_TRIES || !(error instanceof UnavailableError)) throw error;
      }
    }
  }
}
