import type { UpstreamFailure } from './failure';
import type { AnswerSink } from './call';
import type { Exchange } from './exchange';

/** Limit of a plain answer. 2,048 embeddings of 3,072 numbers exceed it: they are about 130 MB of JSON. */
export const MAX_ANSWER_BYTES = 96 * 1024 * 1024;

export type PlainAnswer =
  | { kind: 'answer'; body: Buffer }
  | { kind: 'failed'; failure: UpstreamFailure }
  | { kind: 'client_closed' | 'hold_lost' };

/** Buffers a plain answer. Aborts its exchange when the client leaves. */
export class PlainRelay implements AnswerSink {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private exchange!: Exchange;
  private resolve!: (answer: PlainAnswer) => void;
  readonly answer = new Promise<PlainAnswer>((resolve) => (this.resolve = resolve));

  constructor(private readonly maxBytes = MAX_ANSWER_BYTES) {}

  run(exchange: Exchange): Promise<PlainAnswer> {
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

  restart(): boolean {
    this.chunks = [];
    this.bytes = 0;
    return true;
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
    this.resolve({ kind: 'answer', body: this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks) });
  }

  onFailure(failure: UpstreamFailure): void {
    this.resolve({ kind: 'failed', failure });
  }
}
