import type { UpstreamFailure } from './failure';
import { logger } from '@tollgate/runtime';
import { MAX_ANSWER_MIB } from '../../catalog/answer-limit';
import type { CatalogModel } from '../../catalog/catalog';
import type { AnswerSink } from './call';
import type { Exchange } from './exchange';

/** Limit of a plain answer. */
export const MAX_ANSWER_BYTES = MAX_ANSWER_MIB * 1024 * 1024;

/** A longer answer counts against the memory of answers with all its bytes. The usual small one costs nothing. */
const MAX_UNCOUNTED_BYTES = 128 * 1024;
/** For memory, at once. Then the request fails. */
const MAX_WAIT_MS = 120_000;

/** The memory of one large answer. */
export interface AnswerMemory {
  /** The bytes that are in memory now. False: no more may come until `resume` is called. */
  growTo(bytes: number): boolean;
  /** All of the answer has come. It keeps its memory. */
  arrived(): void;
  /** Nothing of the answer is in memory any more. Repeats are harmless. */
  release(): void;
}

/** Opens the memory of a large answer. `resume` is never called within a call of it, nor after its release. */
export type OpenMemory = (resume: () => void) => AnswerMemory;

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
 * Buffers a plain answer and reads it. Another backend is asked for one that cannot be used, but not for one that we
 * had no time to read: that would only be more to read. Aborts its exchange when the client leaves.
 *
 * A large answer has a part of the memory of answers, and its backend waits while that is used up. Its part is
 * released once nothing of the answer is in memory: when the answer fails or begins again, but not before a worker has
 * given its bytes up; else by the owner's `release`, after the client got the answer.
 */
export class PlainRelay<T> implements AnswerSink {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private exchange!: Exchange;
  private isDone = false;
  private memory: AnswerMemory | null = null;
  /** The backend has to wait. */
  private waiting: NodeJS.Timeout | undefined;
  private endsAtMs = Infinity;
  private isBeingRead = false;
  private resolve!: (answer: PlainAnswer<T> | Promise<never>) => void;
  readonly answer = new Promise<PlainAnswer<T>>((resolve) => (this.resolve = resolve));

  constructor(
    private readonly read: ReadAnswer<T>,
    private readonly openMemory: OpenMemory,
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

  onHead(endsAtMs: number): void {
    this.endsAtMs = endsAtMs;
  }

  mayRestart(): boolean {
    return true;
  }

  restart(): void {
    this.release();
  }

  /** Nothing of the answer is needed any more. Repeats are harmless. */
  release(): void {
    this.forgetChunks();
    this.memory?.release();
    this.memory = null;
  }

  private forgetChunks(): void {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.chunks = [];
    this.bytes = 0;
  }

  onData(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    if (this.bytes > this.maxBytes) {
      this.exchange.abort();
      this.onFailure({ kind: 'failed', reason: 'the answer is too long' });
      return true;
    }
    this.chunks.push(chunk);
    return this.bytes <= MAX_UNCOUNTED_BYTES || this.reserve();
  }

  /** False: the backend has to wait for memory. */
  private reserve(): boolean {
    this.memory ??= this.openMemory(() => {
      clearTimeout(this.waiting);
      this.waiting = undefined;
      this.exchange.resume();
    });
    if (this.memory.growTo(this.bytes)) return true;
    const waitMs = Math.max(0, Math.min(MAX_WAIT_MS, this.endsAtMs - performance.now()));
    this.waiting ??= setTimeout(() => {
      logger('gateway').warn({ backend: this.exchange.backendUrl }, 'an answer got no memory in time');
      this.giveUp(this.endsAtMs);
    }, waitMs);
    return false;
  }

  onEnd(endsAtMs: number): void {
    const body = this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
    // The bytes may go to another thread.
    this.forgetChunks();
    this.memory?.arrived();
    this.isBeingRead = true;
    this.read(body, { endsAtMs, isGone: () => this.isDone }).then(
      (read) => this.onRead(read, endsAtMs),
      // A bug.
      (error: Error) => {
        this.release();
        this.resolve(Promise.reject(error));
      },
    );
  }

  private onRead(read: ReadResult<T>, endsAtMs: number): void {
    this.isBeingRead = false;
    if (this.isDone) return this.release();
    if (read.kind === 'unusable') return void this.exchange.reject({ kind: 'failed', reason: read.reason });
    if (read.kind === 'unread') return this.giveUp(endsAtMs);
    this.exchange.accept();
    this.end({ kind: 'answer', answer: read.answer });
  }

  /** We had no time or no memory for the answer. */
  private giveUp(endsAtMs: number): void {
    this.exchange.abort();
    const isLate = performance.now() >= endsAtMs;
    this.onFailure(isLate ? { kind: 'timeout' } : { kind: 'busy', retryAfterSeconds: null });
  }

  onFailure(failure: UpstreamFailure): void {
    this.end({ kind: 'failed', failure });
  }

  private end(answer: PlainAnswer<T>): void {
    if (this.isDone) return;
    this.isDone = true;
    if (answer.kind !== 'answer' && !this.isBeingRead) this.release();
    this.resolve(answer);
  }
}
