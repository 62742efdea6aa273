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
export type ReadAnswer<T> = (body: Buffer) => { kind: 'usable'; answer: T } | { kind: 'unusable'; reason: string };

/**
 * Buffers a plain answer and reads it. Another backend is asked for one that cannot be used. Aborts its exchange when
 * the client leaves.
 */
export class PlainRelay<T> implements AnswerSink {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private exchange!: Exchange;
  private resolve!: (answer: PlainAnswer<T>) => void;
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
    this.resolve({ kind: 'client_closed' });
  }

  /** Nothing pays for the answer any more. */
  holdLost(): void {
    this.exchange.abort();
    this.resolve({ kind: 'hold_lost' });
  }

  /** The process is stopping. */
  cutOff(): void {
    this.exchange.abort();
    this.resolve({ kind: 'failed', failure: { kind: 'stopped' } });
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

  onEnd(): void {
    const read = this.read(this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks));
    if (read.kind === 'usable') this.resolve({ kind: 'answer', answer: read.answer });
    else this.exchange.reject({ kind: 'failed', reason: read.reason });
  }

  onFailure(failure: UpstreamFailure): void {
    this.resolve({ kind: 'failed', failure });
  }
}
