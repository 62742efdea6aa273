import { join } from 'node:path';
import { pool, type Pool, TerminateError } from 'workerpool';
import { settlesWithin } from '@tollgate/runtime';
import { ReadTime } from './read-time';

export interface ReadLimits {
  /** Until a worker begins, behind others. */
  maxWaitMs: number;
  /** CPU time of one reading in a worker. */
  maxReadMs: number;
  /** For one reading in a worker, if other programs or the main thread need the cores. */
  readTimeoutMs: number;
}

/** Six times the CPU time. */
export const READ_TIMEOUT_FACTOR = 6;
/** Each worker has its own tokenizers (80 MB), so idle workers are ended. */
const IDLE_MS = 60_000;
const MAX_WORKER_HEAP_MIB = 1_024;

/**
 * Why a worker did not read:
 * - `busy`: no worker was free in time, the machine gave it no time, or the pool was closed;
 * - `costly`: it used up its CPU time or its memory;
 * - `failed`: it threw an error.
 */
export type UnreadReason = 'busy' | 'costly' | 'failed';

export class UnreadError extends Error {
  constructor(
    readonly why: UnreadReason,
    message: string,
  ) {
    super(message);
  }
}

/** Bytes that wait for a worker. */
interface Waiting {
  /** Null: taken by a worker, or given up. */
  raw: Buffer | null;
  /** Called when a worker begins to read the bytes. */
  begin: () => void;
  /** Removes the bytes from the pool's queue. Ends the worker if it reads them. */
  leave: () => void;
}

/**
 * Worker threads that read large bodies or answers, so that these do not delay others on the event loop. An owner has
 * one reading in the workers at a time, so that no owner blocks the others.
 */
export class ReadingPool {
  private workers: Pool | null = null;
  private running = 0;
  private idle: NodeJS.Timeout | undefined;
  private readonly lastOfOwner = new Map<string, Promise<unknown>>();

  /** @param worker its file below inference/, which has a method `read` that emits an event when it begins */
  constructor(
    private readonly worker: string,
    private readonly maxWorkers: number,
    private readonly limits: ReadLimits,
  ) {}

  /**
   * Takes the buffer over: it is transferred to the worker, not copied (copies of 10 MiB keep the garbage collector
   * busy). Rejects with UnreadError, or with what `args` throws.
   * @param args called at the owner's turn; the worker gets the bytes first, then these
   * @param endsAtMs a further limit of all, by `performance.now()`
   */
  read<T>(owner: string, raw: Buffer, args: () => unknown[], endsAtMs = Infinity): Promise<T> {
    const before = this.lastOfOwner.get(owner) ?? Promise.resolve();
    const waiting: Waiting = { raw, begin: () => {}, leave: () => {} };
    const begun = new Promise<void>((resolve) => (waiting.begin = resolve));
    const work = before.then(() => this.run<T>(waiting, args, endsAtMs));
    const ended = work.then(
      () => undefined,
      () => undefined,
    );
    void ended.then(waiting.begin);
    this.lastOfOwner.set(owner, ended);
    void ended.then(() => {
      if (this.lastOfOwner.get(owner) === ended) this.lastOfOwner.delete(owner);
    });
    return this.begunInTime(begun, work, waiting, endsAtMs);
  }

  async close(): Promise<void> {
    clearTimeout(this.idle);
    const { workers } = this;
    this.workers = null;
    await workers?.terminate(true);
  }

  private async begunInTime<T>(begun: Promise<void>, work: Promise<T>, waiting: Waiting, endsAtMs: number): Promise<T> {
    const maxWaitMs = Math.max(0, Math.min(this.limits.maxWaitMs, endsAtMs - performance.now()));
    if (await settlesWithin(maxWaitMs, begun)) return work;
    waiting.raw = null;
    waiting.leave();
    throw new UnreadError('busy', `no worker was free within ${Math.round(maxWaitMs)} ms`);
  }

  private async run<T>(waiting: Waiting, args: () => unknown[], endsAtMs: number): Promise<T> {
    const { raw } = waiting;
    if (raw === null) throw new UnreadError('busy', 'given up');
    waiting.raw = null;
    const more = args();
    // A part of a larger buffer cannot be transferred.
    const owned = raw.length === raw.buffer.byteLength;
    const bytes = owned ? new Uint8Array(raw.buffer) : new Uint8Array(raw);
    clearTimeout(this.idle);
    this.running += 1;
    const workers = (this.workers ??= pool(fileOf(this.worker), {
      workerType: 'thread',
      maxWorkers: this.maxWorkers,
      workerThreadOpts: { resourceLimits: { maxOldGenerationSizeMb: MAX_WORKER_HEAP_MIB } },
    }));
    const time = new ReadTime(this.limits);
    try {
      const task = workers.exec('read', [bytes, ...more], {
        transfer: [bytes.buffer],
        on: () => {
          waiting.begin();
          time.begin(() => void task.cancel(), endsAtMs);
        },
      });
      const leave = () => void task.cancel();
      waiting.leave = leave;
      return (await task) as T;
    } catch (error) {
      // It cost a worker, unless our own shutdown ended the worker, or the machine gave it no time.
      const isClosed = this.workers !== workers;
      if (time.isOver) throw new UnreadError(time.isUsedUp ? 'costly' : 'busy', 'took too long');
      const why = isClosed ? 'busy' : error instanceof TerminateError ? 'costly' : 'failed';
      throw new UnreadError(why, (error as Error).message);
    } finally {
      time.end();
      this.running -= 1;
      if (this.running === 0) this.idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    }
  }
}

/** The compiled worker: threads load no TypeScript. */
function fileOf(worker: string): string {
  const compiled = __filename.endsWith('.ts') ? join('..', '..', '..', 'dist', 'inference') : '..';
  return join(__dirname, compiled, `${worker}.js`);
}
