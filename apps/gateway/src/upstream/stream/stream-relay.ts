import type { CatalogModel } from '../../catalog/catalog';
import type { ChunkTranslator, Frame, Piece } from '../wire/chunk-translator';
import { DeliveredText } from '../count/delivered-text';
import type { AnswerSink } from '../exchange/call';
import type { Exchange } from '../exchange/exchange';
import type { UpstreamFailure } from '../exchange/failure';
import {
  type Allowance,
  brokenOff,
  type ClientSide,
  type Deadline,
  PROPER_ENDS,
  type StreamEnd,
  type StreamOutput,
} from './stream-sides';
import { OpenChoices } from './open-choices';
import type { Watched } from './stream-watch';
import type { ReportedUsage } from '../wire/usage-field';

/** The most characters of events that are held back before the first output. More are passed on. */
const MAX_OPENING_CHARS = 64 * 1024;
/** A backend that sends more network chunks than this after `[DONE]` is disconnected. */
const MAX_CHUNKS_AFTER_DONE = 4;

/**
 * Passes a stream on, chunk by chunk, at the client's pace. It withholds the end: after the settlement, `finish`
 * returns the last `finish_reason` and `[DONE]`. `run` resolves exactly once; after that only its caller writes.
 */
export class StreamRelay implements AnswerSink {
  /** The text written to the client, without the text of a withheld chunk. */
  readonly delivered: DeliveredText;
  /** Chunks that delivered output. */
  chunks = 0;
  /** When the first output was delivered, by `performance.now()`. */
  firstTokenAtMs: number | null = null;
  /** Something was written, so a failure must be sent as an event. */
  begun = false;
  writes = 0;
  /** When the client stopped reading, by `Date.now()`. Null: it reads. */
  stalledSinceMs: number | null = null;
  /** A fallback is asked. */
  onServedBy: (model: CatalogModel) => void = () => {};
  onFirstOutput: () => void = () => {};
  /** Set by StreamWatch. */
  watched: Watched | null = null;
  private exchange!: Exchange;
  private held: Extract<Frame, { kind: 'finish' }> | null = null;
  private waiting: Frame | null = null;
  private usage: ReportedUsage = null;
  private readonly choices: OpenChoices;
  private upstreamEnded = false;
  private chunksAfterEnd = 0;
  private ended: StreamEnd | null = null;
  /** Events before the first output. The client gets them with it, so that another backend may replace them. */
  private opening = '';
  /** More than comments was written to the client. */
  private passedOn = false;
  private resolve!: (end: StreamEnd) => void;
  private readonly end = new Promise<StreamEnd>((resolve) => (this.resolve = resolve));

  constructor(
    private readonly translator: ChunkTranslator,
    private readonly client: ClientSide,
    private readonly allowance: Allowance,
    private readonly deadline: Deadline,
    private readonly output: StreamOutput,
  ) {
    this.delivered = new DeliveredText(output.countText);
    this.choices = new OpenChoices(output.choices);
    // A constant first: see `Client.endWith`.
    const goOn = () => this.goOn();
    allowance.onReady = goOn;
    client.onDrain(() => {
      this.stalledSinceMs = null;
      this.goOn();
    });
  }

  /** The backend has ended every choice that was asked for, and each with `length`. */
  get wentToLimit(): boolean {
    return this.choices.wentToLimit;
  }

  run(exchange: Exchange): Promise<StreamEnd> {
    this.exchange = exchange;
    exchange.start();
    return this.end;
  }

  clientClosed(): void {
    this.stop({ outcome: 'client_closed', failure: null, usage: this.finalUsage() });
  }

  /** The hold's deadline has passed: nothing more may be delivered. */
  holdLost(): void {
    this.stop({ outcome: 'hold_lost', failure: null, usage: null });
  }

  /** The process is stopping. The stream ends with the output so far, or completes if all choices are finished. */
  cutOff(): void {
    this.onFailure({ kind: 'stopped' });
  }

  /** Sends a comment, so that no proxy takes a slow model for a dead connection. All writes end with a whole event. */
  keepAlive(): void {
    if (!this.ended && this.stalledSinceMs === null) this.write(': keep-alive\n\n');
  }

  /**
   * The last bytes of a settled stream: the withheld chunk, a `length` chunk if the output was cut, the usage (on the
   * last chunk or separate), and `[DONE]`.
   */
  finish(usage: object, separateUsage: boolean): string {
    const last: Record<string, unknown>[] = this.held ? [this.held.chunk] : [];
    if (this.ended?.outcome === 'credit_ended' || this.ended?.outcome === 'capped')
      last.push(this.translator.chunk(this.choices.indexes.map(this.output.endOfChoice)));
    let out = this.opening;
    for (const [i, chunk] of last.entries())
      out += this.translator.encode(chunk, !separateUsage && i === last.length - 1 ? usage : undefined);
    if (separateUsage) out += this.translator.encode(this.translator.chunk([]), usage);
    return `${out}data: [DONE]\n\n`;
  }

  onHead(): void {}

  onFallback(model: CatalogModel): void {
    this.translator.rename(model.id);
    this.onServedBy(model);
  }

  mayRestart(): boolean {
    const isFinished = this.held !== null && this.choices.haveEnded;
    return !this.ended && this.chunks === 0 && !this.passedOn && !isFinished;
  }

  restart(): void {
    this.translator.restart();
    this.held = this.waiting = this.usage = null;
    this.choices.restart();
    this.opening = '';
    this.upstreamEnded = false;
  }

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
    // The last event counts even without its closing empty line.
    this.translator.push('\n\n');
    this.pump();
  }

  onFailure(failure: UpstreamFailure): void {
    // If all choices are finished, a later failure does not matter.
    if (this.held && this.choices.haveEnded) this.stop({ outcome: 'complete', failure: null, usage: this.usage });
    else this.stop({ outcome: 'upstream_error', failure, usage: null });
  }

  private goOn(): void {
    if (!this.ended && this.pump()) this.exchange.resume();
  }

  /**
   * Delivers as much as possible. Returns false if the backend must wait. After the hold's deadline nothing is
   * delivered, as another process may have ended the hold. Output is written within this turn of the event loop, and
   * the deadline has a margin for that.
   */
  private pump(): boolean {
    let out = '';
    let end: StreamEnd | null = null;
    if (this.deadline.passed && !this.ended) this.holdLost();
    while (!this.ended && !end && this.stalledSinceMs === null) {
      const frame: Frame | null = this.waiting ?? this.translator.next();
      this.waiting = null;
      if (frame === null) {
        if (this.upstreamEnded) end = this.endOfStream('the stream ended early');
        break;
      }
      if (frame.kind === 'broken') end = brokenOff(frame.reason);
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
    this.passOn(out);
    // The exchange may ask another backend. It answers by `restart`, or by `onFailure`.
    if (end && !(end.failure && this.exchange.reject(end.failure))) this.stop(end);
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

  /** The bytes of the chunk's part that the hold covers. Empty if the chunk is not plain text. */
  private deliverFitting(frame: Extract<Frame, { kind: 'content' | 'finish' }>): string {
    const { field, pieces } = frame;
    if (field === null) return '';
    const text = this.delivered.fitting(this.held?.pieces ?? [], pieces[0]!, this.allowance.limit);
    const out = text === '' ? null : this.translator.replaceText(frame, text);
    if (out === null) return '';
    return this.deliver({ kind: 'content', out, pieces: [{ ...pieces[0]!, text }], field, usage: null });
  }

  /** The bytes for the client. A chunk with a finish_reason is withheld until another one follows. */
  private deliver(frame: Extract<Frame, { kind: 'content' | 'finish' }>): string {
    const { held } = this;
    // Some services send usage or a verdict after the last finish_reason, in a chunk with an empty choice.
    if (held && this.choices.haveEnded && frame.kind === 'content' && frame.pieces.length === 0) {
      this.usage = frame.usage ?? this.usage;
      return frame.out;
    }
    const before = held ? this.translator.encode(held.chunk) : '';
    if (held) this.countIn(held.pieces);
    this.held = null;
    // Usage on a chunk is not final if other chunks follow.
    this.usage = null;
    if (frame.kind === 'content') {
      this.countIn(frame.pieces);
      return before + frame.out;
    }
    this.held = frame;
    this.usage = frame.usage;
    this.choices.end(frame.finished, frame.atLimit);
    return before;
  }

  private countIn(pieces: readonly Piece[]): void {
    for (const piece of pieces) this.delivered.add(piece);
    if (pieces.length === 0) return;
    if (this.firstTokenAtMs === null) {
      this.firstTokenAtMs = performance.now();
      this.exchange.delivering();
      this.onFirstOutput();
    }
    this.chunks += 1;
  }

  /** Withholds what comes before the first output. */
  private passOn(out: string): void {
    if (out === '') return;
    this.opening += out;
    if (this.chunks === 0 && this.opening.length <= MAX_OPENING_CHARS) return;
    this.passedOn = true;
    this.write(this.opening);
    this.opening = '';
  }

  private write(out: string): void {
    if (!this.begun) {
      this.begun = true;
      this.client.begin();
    }
    this.writes += 1;
    if (!this.client.write(out)) this.stalledSinceMs = Date.now();
  }

  private endOfStream(problem: string): StreamEnd {
    return this.held ? { outcome: 'complete', failure: null, usage: this.usage } : brokenOff(problem);
  }

  /** The usage for a client that left: the backend's report, if it is final and covers no withheld text. */
  private finalUsage(): ReportedUsage {
    return this.held?.pieces.length === 0 && this.choices.haveEnded ? this.usage : null;
  }

  private stop(end: StreamEnd): void {
    if (this.ended) return;
    this.ended = end;
    // The withheld text counts only if `finish` will write it.
    if (this.held && PROPER_ENDS.has(end.outcome)) this.countIn(this.held.pieces);
    // Reads on after [DONE] even if the client does not: the connection can be reused once the answer ends properly.
    if (end.outcome === 'complete') this.exchange.resume();
    else this.exchange.abort();
    this.resolve(end);
  }
}
