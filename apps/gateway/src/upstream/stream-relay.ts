import type { ChunkTranslator, Frame, Piece } from './chunk-translator';
import { DeliveredText } from './delivered-text';
import type { AnswerSink, Exchange } from './exchange';
import type { UpstreamFailure } from './failure';
import type { ReportedUsage } from './usage-field';

/** After `[DONE]` a backend has nothing more to say: one that goes on all the same is broken off. */
const MAX_CHUNKS_AFTER_DONE = 4;

/** What the stream may still deliver before the credit must be asked again (admit/stream-allowance.ts). */
export interface Allowance {
  /**
   * Takes a chunk's output. `wait`: ask again when `onReady` is called. `capped`: it goes beyond what was asked for.
   * `ended`: no credit for it. `lost`: there is no hold any more.
   * @param most tokens that it can have: the bytes of its text
   * @param count tokens of all the output so far and of this chunk; some number above the limit where they are more
   */
  take(most: number, count: (limit: number) => number): 'granted' | 'wait' | 'capped' | 'ended' | 'lost';
  /** Tokens of all the output that may be delivered, by what is held now. */
  readonly limit: number;
  onReady: () => void;
}

/** Until when a hold lives at the least (libs/admission/src/hold-deadline.ts). */
export interface Deadline {
  readonly passed: boolean;
}

/** The client's side of a response. */
export interface ClientSide {
  /** The response head, once, before the first bytes. */
  begin(): void;
  write(latin1: string): boolean;
  onDrain(listener: () => void): void;
}

export interface StreamEnd {
  /** `capped`: the backend went on after all that it was asked for; the answer is complete at that. */
  outcome: 'complete' | 'capped' | 'client_closed' | 'upstream_error' | 'credit_ended' | 'hold_lost';
  /** Set when it is `upstream_error`. */
  failure: UpstreamFailure | null;
  /** Of the finishing frames; null: count what was delivered. */
  usage: ReportedUsage;
}

/** Outcomes whose end `finish` writes. */
const PROPER: ReadonlySet<StreamEnd['outcome']> = new Set(['complete', 'capped', 'credit_ended']);

/**
 * Passes a stream on, chunk by chunk, at the client's pace, and stops before its end: what has the last `finish_reason`
 * and `[DONE]` are written by `finish` after the settlement. `run` resolves exactly once; after that the relay writes
 * nothing: the end, or an error, is its caller's to write.
 */
export class StreamRelay implements AnswerSink {
  /** What was written for the client to read: not the text of a chunk that is held back. */
  readonly delivered: DeliveredText;
  /** Chunks that delivered something. */
  chunks = 0;
  /** When the first of them was there, by `performance.now()`. */
  firstTokenAtMs: number | null = null;
  /** Something was written to the client, so that a failure can only be an event. */
  begun = false;
  /** Since when the client has not read, or null. */
  stalledSinceMs: number | null = null;
  private exchange!: Exchange;
  private held: Extract<Frame, { kind: 'finish' }> | null = null;
  private waiting: Frame | null = null;
  private usage: ReportedUsage = null;
  private readonly unfinished: Set<number>;
  private upstreamEnded = false;
  private chunksAfterEnd = 0;
  private ended: StreamEnd | null = null;
  private resolve!: (end: StreamEnd) => void;
  private readonly end = new Promise<StreamEnd>((resolve) => (this.resolve = resolve));

  constructor(
    private readonly translator: ChunkTranslator,
    private readonly client: ClientSide,
    private readonly allowance: Allowance,
    private readonly deadline: Deadline,
    countText: (text: string) => number,
    choices: number,
    private readonly endOfChoice: (index: number) => object,
  ) {
    this.delivered = new DeliveredText(countText);
    this.unfinished = new Set(Array.from({ length: choices }, (_, index) => index));
    allowance.onReady = () => this.goOn();
    client.onDrain(() => {
      this.stalledSinceMs = null;
      this.goOn();
    });
  }

  run(exchange: Exchange): Promise<StreamEnd> {
    this.exchange = exchange;
    exchange.start();
    return this.end;
  }

  clientClosed(): void {
    this.stop({ outcome: 'client_closed', failure: null, usage: this.finalUsage() });
  }

  /** There is no hold any more (its deadline passed): nothing more may be delivered. */
  holdLost(): void {
    this.stop({ outcome: 'hold_lost', failure: null, usage: null });
  }

  /** The process is stopping: what was delivered is the answer, unless its end is here already. */
  cutOff(): void {
    this.onFailure({ kind: 'stopped' });
  }

  /** A comment, so that nobody on the way takes a model that thinks for a dead connection. */
  keepAlive(): void {
    if (!this.ended && this.chunks === 0) this.write(': keep-alive\n\n');
  }

  /**
   * Last bytes of a settled stream: the held chunk, the end that the credit made, the usage on the last of them or
   * apart, and `[DONE]`.
   */
  finish(usage: object, separateUsage: boolean): string {
    const last: Record<string, unknown>[] = this.held ? [this.held.chunk] : [];
    if (this.ended?.outcome === 'credit_ended' || this.ended?.outcome === 'capped')
      last.push(this.translator.chunk([...this.unfinished].map(this.endOfChoice)));
    let out = '';
    for (const [i, chunk] of last.entries()) {
      out += this.translator.encode(chunk, !separateUsage && i === last.length - 1 ? usage : undefined);
    }
    if (separateUsage) out += this.translator.encode(this.translator.chunk([]), usage);
    return `${out}data: [DONE]\n\n`;
  }

  onHead(): void {}

  onData(chunk: Buffer): boolean {
    if (this.ended) {
      if (++this.chunksAfterEnd > MAX_CHUNKS_AFTER_DONE) this.exchange.abort();
      return true;
    }
    this.translator.push(chunk.toString('latin1'));
    return this.pump();
  }

  onEnd(): void {
    this.upstreamEnded = true;
    // An event whose last empty line is missing is an event all the same.
    this.translator.push('\n\n');
    this.pump();
  }

  onFailure(failure: UpstreamFailure): void {
    // All choices are finished: what failed is only what comes after.
    if (this.held && this.unfinished.size === 0) this.stop({ outcome: 'complete', failure: null, usage: this.usage });
    else this.stop({ outcome: 'upstream_error', failure, usage: null });
  }

  private goOn(): void {
    if (!this.ended && this.pump()) this.exchange.resume();
  }

  /**
   * Delivers what can be delivered. False: the backend must wait. Past the hold's deadline that is nothing, as somebody
   * else may have ended the hold: what is written is written at the end of this same turn, and the deadline has a
   * margin for it.
   */
  private pump(): boolean {
    let out = '';
    let end: StreamEnd | null = null;
    if (this.deadline.passed && !this.ended) this.holdLost();
    while (!this.ended && !end && this.stalledSinceMs === null) {
      const frame: Frame | null = this.waiting ?? this.translator.next();
      this.waiting = null;
      if (frame === null) {
        if (this.upstreamEnded) end = this.endOfStream('the stream broke off');
        break;
      }
      if (frame.kind === 'broken') end = this.brokenOff(frame.reason);
      else if (frame.kind === 'done') end = this.endOfStream('no finish_reason before [DONE]');
      else if (frame.kind === 'usage') this.usage = frame.usage;
      else {
        const taken = this.take(frame.pieces);
        if (taken === 'wait') {
          this.waiting = frame;
          break;
        }
        if (taken === 'granted') out += this.deliver(frame);
        else if (taken === 'lost') end = { outcome: 'hold_lost', failure: null, usage: null };
        else {
          out += this.deliverFitting(frame);
          end = { outcome: taken === 'capped' ? 'capped' : 'credit_ended', failure: null, usage: null };
        }
      }
    }
    if (out !== '') this.write(out);
    if (end) this.stop(end);
    return this.ended !== null || (this.waiting === null && this.stalledSinceMs === null);
  }

  private take(pieces: readonly Piece[]): ReturnType<Allowance['take']> {
    if (pieces.length === 0) return 'granted';
    let most = 0;
    for (const { text, least } of pieces) most += Math.max(text.length, least);
    return this.allowance.take(most, (limit) =>
      this.delivered.tokensWith([...(this.held?.pieces ?? []), ...pieces], limit),
    );
  }

  /** Bytes of as much of a chunk as is held; nothing where it is no plain text. */
  private deliverFitting(frame: Extract<Frame, { kind: 'content' | 'finish' }>): string {
    const { field, pieces } = frame;
    if (field === null) return '';
    const text = this.delivered.fitting(this.held?.pieces ?? [], pieces[0]!, this.allowance.limit);
    const out = text === '' ? null : this.translator.withText(frame, text);
    if (out === null) return '';
    return this.deliver({ kind: 'content', out, pieces: [{ ...pieces[0]!, text }], field });
  }

  /** Bytes for the client. A chunk with a finish_reason is held back; it goes out when another follows. */
  private deliver(frame: Extract<Frame, { kind: 'content' | 'finish' }>): string {
    let before = '';
    if (this.held) {
      before = this.translator.encode(this.held.chunk);
      this.countIn(this.held.pieces);
    }
    this.held = null;
    // Usage on a chunk that others follow was not final.
    this.usage = null;
    if (frame.kind === 'content') {
      this.countIn(frame.pieces);
      return before + frame.out;
    }
    this.held = frame;
    this.usage = frame.usage;
    for (const choice of frame.finished) this.unfinished.delete(choice);
    return before;
  }

  private countIn(pieces: readonly Piece[]): void {
    for (const piece of pieces) this.delivered.add(piece);
    if (pieces.length === 0) return;
    this.firstTokenAtMs ??= performance.now();
    this.chunks += 1;
  }

  private write(out: string): void {
    if (!this.begun) {
      this.begun = true;
      this.client.begin();
    }
    if (!this.client.write(out)) this.stalledSinceMs = Date.now();
  }

  private endOfStream(problem: string): StreamEnd {
    return this.held ? { outcome: 'complete', failure: null, usage: this.usage } : this.brokenOff(problem);
  }

  private brokenOff(reason: string): StreamEnd {
    return { outcome: 'upstream_error', failure: { kind: 'failed', reason }, usage: null };
  }

  /** For a client that has gone: the backend's count holds when it is final and nothing of it was held back. */
  private finalUsage(): ReportedUsage {
    return this.held?.pieces.length === 0 && this.unfinished.size === 0 ? this.usage : null;
  }

  private stop(end: StreamEnd): void {
    if (this.ended) return;
    this.ended = end;
    // `finish` writes what is held back; other ends do not.
    if (this.held && PROPER.has(end.outcome)) this.countIn(this.held.pieces);
    // What follows [DONE] is nothing, and is read whether or not the client reads: the connection may be used again
    // when the backend ends properly.
    if (end.outcome === 'complete') this.exchange.resume();
    else this.exchange.abort();
    this.resolve(end);
  }
}
