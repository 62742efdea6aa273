import type { UpstreamFailure } from './failure';
import type { CatalogModel } from '../catalog/catalog';
import type { AnswerSink } from './call';
import type { Exchange } from './exchange';

/** Limit of a plain answer. 2,048 embeddings of 3,072 numbers exceed it: they are about 130 MB of JSON. */
export const MAX_ANSWER_BYTES = 96 * 1024 * 1024;

export type PlainAnswer<T> =
  | { kind: 'answer'; answer: T }
  | { kind: 'failed'; failure: UpstreamFailure }
  | { kind: 'client_closed' | 'hold_lost' };

/** What is in a whole answer, or why it cannot be used. */
export type ReadResult<T> =
  | { kind: 'usable'; answer: T }
  | { kind: 'unusable'; reason: string }
  /** We had no time to read it. It may well be usable. */
  | { kind: 'unread' };

/** Takes the body over, which may go to another thread. `until` is for a reading that has to wait. */
export type ReadAnswer<T> = (body: Buffer, until: ReadUntil) => Promise<ReadResult<T>>;

export interface ReadUntil {
  /** The time for all of the request is over, by `performance.now()`. */
  endsAtMs: number;
  /** Nobody waits for the answer any more. */
  isGone: () => boolean;
}

/**
 * Buffers a plain answer and reads it. Another backend is asked for one that cannot be used, but not for one that we had
 * no time to read: that would only be more to read. Aborts its exchange when the client leaves.
 */
export class PlainRelay<T> implements AnswerSink {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private exchange!: Exchange;
  private isDone = false;
  private resolve!: (answer: PlainAnswer<T> | Promise<never>) => void;
  readonly answer = new Promise<PlainAnswer<T>>((resolve) => (this.resolve = resolve));

  constructor(
    private readonly read: ReadAnswer<T>,
    private readonly maxBytes = MAX_ANSWER_BYTES,
    readonly onFallback: (model: CatalogModel) => void = () => {},
  ) {}

  run(exchange: Exchange): Promise<PlainAnswer<T>> {
    this.exchange = exchange;
    exchange.start();
    return this.answer;
  }

  clientClosed(): void {
    this.exchange.abort();
    this.end({ kind: 'client_closed' });
  }

  /** Nothing pays for the answer any more. */
  holdLost(): void {
    this.exchange.abort();
    this.end({ kind: 'hold_lost' });
  }

  /** The process is stopping. */
  cutOff(): void {
    this.exchange.abort();
    this.end({ kind: 'failed', failure: { kind: 'stopped' } });
  }

  onHead(): void {}

  mayRestart(): boolean {
    return true;
  }

  restart(): void {
    this.chunks = [];
    this.bytes = 0;
  }

  onData(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    if (this.bytes > this.maxBytes) {
      this.exchange.abort();
      this.onFailure({ kind: 'failed', reason: 'the answer is too long' });
    } else this.chunks.push(chunk);
    return true;
  }

  onEnd(endsAtMs: number): void {
    const body = this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
    // The bytes may go to another thread.
    this.restart();
    this.read(body, { endsAtMs, isGone: () => this.isDone }).then(
      (read) => this.onRead(read, endsAtMs),
      // A bug.
      (error: unknown) => this.resolve(Promise.reject(error as Error)),
    );
  }

  /** The exchange ignores it after `abort`. */
  private onRead(read: ReadResult<T>, endsAtMs: number): void {
    if (read.kind === 'unusable') return void this.exchange.reject({ kind: 'failed', reason: read.reason });
    if (read.kind === 'unread') {
      this.exchange.abort();
      const isLate = performance.now() >= endsAtMs;
      return this.onFailure(isLate ? { kind: 'timeout' } : { kind: 'busy', retryAfterSeconds: null });
    }
    this.exchange.accept();
    this.end({ kind: 'answer', answer: read.answer });
  }

  onFailure(failure: UpstreamFailure): void {
    this.end({ kind: 'failed', failure });
  }

  private end(answer: PlainAnswer<T>): void {
    this.isDone = true;
    this.resolve(answer);
  }
}
