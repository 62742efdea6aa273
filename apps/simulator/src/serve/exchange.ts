import type { ServerResponse } from 'node:http';
import type { FaultPlan } from '../config/fault-rules';
import type { ModelSettings } from '../config/settings';
import { newReplyId, type Frame } from '../wire/reply';
import type { SimulatorStats } from './stats';

/** Headers of the backend itself. A gateway must pass none of them on. */
const OWN_HEADERS = [
  'server',
  'simulator',
  'openai-organization',
  'org-simulator',
  'x-ratelimit-remaining-requests',
  '7',
];
/** Node runs a timer of more than this at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const MALFORMED_EVENT = 'data: {"id":"chatcmpl-sim","choices":[{"index":0,"delta":{"content":"bro\n\n';

export type Pace = Pick<ModelSettings, 'tokensPerSecond' | 'firstTokenDelayMs'>;

/**
 * The answer to one request. It ends exactly once and is counted as finished, aborted (the client left) or cut (a
 * fault). Nothing is generated or written after its end. States: waiting for a timer or the client's socket, writing,
 * ended.
 */
export class Exchange {
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  #cut = false;
  /** Called with the tokens as they are generated, also for a plain answer whose client leaves early. */
  onGenerated: (tokens: number) => void = () => {};

  constructor(
    private readonly res: ServerResponse,
    /** Called for each count, because a reset replaces the object. */
    private readonly stats: () => SimulatorStats,
  ) {
    stats().requestsStarted++;
    stats().openNow++;
    res.on('close', () => {
      this.#ended = true;
      clearTimeout(this.#timer);
      const count = stats();
      count.openNow--;
      if (this.#cut) count.requestsCut++;
      else if (res.writableFinished) count.requestsFinished++;
      else count.requestsAborted++;
    });
  }

  /**
   * Runs `step` after the delay, at once for 0. Does not run it if the client has left by then. The longest delay is 24
   * days.
   */
  after(delayMs: number, step: () => void): void {
    if (this.#ended) return;
    if (delayMs <= 0) return step();
    this.#timer = setTimeout(step, Math.min(delayMs, MAX_TIMER_MS));
  }

  /** Sends an error. Faults in the middle of a body do not apply to it. `body` is ASCII. */
  error(status: number, body: string, headers: string[] = []): void {
    if (this.#ended) return;
    this.#head(status, ['content-type', 'application/json', 'content-length', String(body.length), ...headers]);
    this.res.end(body, 'latin1');
  }

  /** Sends a plain answer after the time that generating `tokens` tokens takes. `body` is ASCII. */
  plain(body: string, tokens: number, pace: Pace, faults: FaultPlan): void {
    const generationMs = pace.tokensPerSecond > 0 ? (tokens / pace.tokensPerSecond) * 1_000 : 0;
    const startMs = performance.now();
    let generated = false;
    this.res.once('close', () => {
      const ranMs = performance.now() - startMs - pace.firstTokenDelayMs;
      const share = generationMs > 0 ? Math.min(1, Math.max(0, ranMs / generationMs)) : 0;
      if (!generated) this.onGenerated(Math.floor(tokens * share));
    });
    this.after(pace.firstTokenDelayMs + generationMs, () => {
      generated = true;
      this.onGenerated(tokens);
      const broken = faults.malformedChunk !== null ? body.slice(0, body.length >> 1) : body;
      this.#head(200, ['content-type', 'application/json', 'content-length', String(broken.length)]);
      if (faults.cutAfterChunks === null && faults.hangAfterChunks === null) {
        this.#countTokens(tokens);
        this.res.end(broken, 'latin1');
        return;
      }
      this.res.write(broken.slice(0, broken.length >> 1), 'latin1');
      if (faults.cutAfterChunks !== null) this.#cutConnection();
    });
  }

  /** Streams events at the given pace, no faster than the client reads, until the last frame or the client leaves. */
  stream(frames: Iterable<Frame>, pace: Pace, faults: FaultPlan): void {
    this.#head(200, ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache']);
    this.res.flushHeaders();
    this.after(pace.firstTokenDelayMs, () => void this.#write(frames, pace, faults));
  }

  /** If the client leaves during a wait, the wait never ends, and nothing more is written. */
  async #write(frames: Iterable<Frame>, { tokensPerSecond }: Pace, faults: FaultPlan): Promise<void> {
    const intervalMs = tokensPerSecond > 0 ? 1_000 / tokensPerSecond : 0;
    const startMs = performance.now();
    let chunks = 0;
    for (const { event, tokens } of frames) {
      if (this.#ended) return;
      if (chunks === faults.cutAfterChunks) return this.#cutConnection();
      if (chunks === faults.hangAfterChunks) return;
      if (tokens > 0) {
        const waitMs = startMs + chunks * intervalMs - performance.now();
        if (waitMs > 0) await new Promise<void>((resolve) => this.after(waitMs, resolve));
        chunks++;
        this.onGenerated(tokens);
        this.#countTokens(tokens);
      }
      const written = tokens > 0 && chunks === faults.malformedChunk ? MALFORMED_EVENT : event;
      if (!this.res.write(written, 'latin1')) await new Promise((resolve) => this.res.once('drain', resolve));
    }
    this.res.end();
  }

  #head(status: number, headers: string[]): void {
    this.res.writeHead(status, [...headers, ...OWN_HEADERS, 'x-request-id', newReplyId('req')]);
  }

  #countTokens(tokens: number): void {
    const stats = this.stats();
    stats.tokensWritten += tokens;
    if (this.res.socket?.destroyed !== false) stats.tokensAfterAbort += tokens;
  }

  /** Sends the bytes written so far, then closes the connection before the answer is complete. */
  #cutConnection(): void {
    this.#cut = true;
    this.res.socket?.destroySoon();
  }
}
