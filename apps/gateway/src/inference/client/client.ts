import type { ServerResponse } from 'node:http';
import { hasUnreadBody } from '../../accept/http-form';
import { continueIfOwed } from '../../accept/server';
import type { ShownLimits } from '../../admit/limit-states';
import { errorHeaders } from '../../http/error-headers';
import { ORIGINAL_ID_HEADER, OWN_ID_HEADER } from '../../http/request-id';
import type { KeptAnswer } from '../../idempotency/kept-answer';
import { type TraceContext, traceContextOf } from '../../http/trace-context';
import type { ClientSide } from '../../upstream/stream/stream-sides';
import type { WatchedClient } from '../../upstream/stream/stream-watch';
import { type InferenceError, stopping } from '../../inference-errors';
import { refusals } from '../report/refusal-metrics';
import type { HeldAttempts } from '../report/refused-request';
import type { RequestTrace } from '../report/request-trace';
import type { UnreadAnswers } from './unread-answers';

export interface Interruptible {
  /** The client has closed the connection before its answer was complete. Called once. */
  clientClosed(): void;
  /** The process is stopping. */
  cutOff(): void;
}

/** The client's side of one request: writes the raw response and notices when the client leaves. */
export class Client implements ClientSide, WatchedClient {
  left = false;
  /** The key of the request and its tenant, once they are known. */
  owner: { readonly tenantId: string; readonly keyId: string; readonly plan: string } | null = null;
  /** The owner of a key that is no longer in force. */
  formerOwner: { readonly tenantId: string; readonly keyId: string } | null = null;
  /** The error that the client got, if it got one. */
  refusal: InferenceError | null = null;
  /** Public model id, once it is found. */
  model: string | null = null;
  /** The request behind a hold, once it has one. */
  admitted: HeldAttempts | null = null;
  /** Whether the request gets a kept answer. Null: it has no Idempotency-Key that is honoured. */
  replayed: boolean | null = null;
  /** Null: there is no tracing. */
  traced: RequestTrace | null = null;
  /** Gets what a stream sends. */
  recorder: { add(latin1: string): void } | null = null;
  /** Ends long answers at the client's pace. Null: they are written at once. */
  unread: UnreadAnswers | null = null;
  place: number | undefined;
  /** The request has usage, although its answer may have ended with an error. */
  wasSettled = false;
  /** What serves the answer. Before that, a client that leaves is noticed by `left`. */
  private relay: Interruptible | null = null;
  private closed = false;
  /** Its last bytes are written, or are about to be. */
  private ended = false;
  private limits: (() => ShownLimits) | null = null;
  private readonly headers: string[];

  /**
   * @param requestId sent to the client: its own `x-request-id`, or `id`
   * @param id ours, unique: the id of the hold, the usage event and the charge
   * @param closing the process is stopping, so this connection takes no further request
   */
  constructor(
    private readonly response: ServerResponse,
    readonly requestId: string,
    readonly id: string,
    closing: boolean,
  ) {
    this.headers = ['x-request-id', requestId, OWN_ID_HEADER, id];
    if (closing) this.closeAfter();
    // Registered first, to notice a client that leaves while its request waits anywhere (undici's `close` in onConnect
    // was too late). A write after that emits an error, which is ignored because `close` reports the same.
    response.on('error', () => {});
    response.once('close', () => {
      this.closed = true;
      if (!response.writableFinished && !this.left) {
        this.left = true;
        this.relay?.clientClosed();
      }
    });
  }

  /** The context of the kept trace, or the caller's own if it sent one. */
  get trace(): TraceContext | null {
    return this.traced ? this.traced.context : traceContextOf(this.response.req);
  }

  /** Fields of every log line about this request that has no model yet. */
  get logged(): { requestId: string; id: string; traceId?: string } {
    const { requestId, id, trace } = this;
    return { requestId, id, ...(trace && { traceId: trace.traceId }) };
  }

  /** Ends the request when the process stops. Without a relay: answers 503 at once, and ignores any later answer. */
  cutOff(): void {
    if (this.ended) return;
    if (this.relay) this.relay.cutOff();
    else this.refuseAndLeave();
  }

  /**
   * `relay` is notified of what ends the request early. An object, because V8 makes a function that is assigned to a
   * property in the old generation, where it keeps the whole request until the next full collection.
   */
  endWith(relay: Interruptible): void {
    this.relay = relay;
  }

  /** Calls `listener` when the last byte is written, or the connection is closed. */
  afterLastByte(listener: () => void): void {
    if (this.closed) listener();
    else this.response.once('close', listener);
  }

  /** An earlier answer of its connection is not complete: node:http gives the next one no socket before. */
  get isQueued(): boolean {
    return this.response.socket === null;
  }

  get begun(): boolean {
    return this.response.headersSent;
  }

  /** Sends `100 Continue` if the client waits for it. */
  awaitBody(): void {
    continueIfOwed(this.response.req, this.response);
  }

  /** Sets the limits for the headers of all answers from now on. `limits` is called when the head is written. */
  setLimits(limits: () => ShownLimits): void {
    this.limits = limits;
  }

  private addCommon(): void {
    if (this.replayed !== null) this.headers.push('idempotent-replayed', String(this.replayed));
    if (!this.limits) return;
    const { requests, tokens } = this.limits();
    this.headers.push('x-ratelimit-limit-requests', String(requests.limit));
    this.headers.push('x-ratelimit-limit-tokens', String(tokens.limit));
    this.headers.push('x-ratelimit-remaining-requests', String(requests.remaining));
    this.headers.push('x-ratelimit-remaining-tokens', String(tokens.remaining));
    this.headers.push('x-ratelimit-reset-requests', toDuration(requests.resetMs));
    this.headers.push('x-ratelimit-reset-tokens', toDuration(tokens.resetMs));
    const isOne = requests.scope === tokens.scope;
    const scope = isOne ? requests.scope : `requests=${requests.scope}, tokens=${tokens.scope}`;
    this.headers.push('x-ratelimit-scope', scope);
  }

  /** Writes the head of a stream. */
  begin(): void {
    this.addCommon();
    this.headers.push('content-type', 'text/event-stream; charset=utf-8');
    this.headers.push('cache-control', 'no-cache', 'x-accel-buffering', 'no');
    this.response.writeHead(200, this.headers);
  }

  write(latin1: string): boolean {
    this.recorder?.add(latin1);
    return this.response.write(latin1, 'latin1');
  }

  onDrain(listener: () => void): void {
    this.response.on('drain', listener);
  }

  /** Writes the last bytes of a stream, and its head if nothing was written before. */
  endStream(latin1: string): void {
    if (this.left || this.ended) return;
    if (!this.begun) this.begin();
    this.end(latin1);
  }

  /** Writes a whole answer. */
  answer(status: number, json: string | Buffer): void {
    if (this.left || this.ended) return;
    const body = typeof json === 'string' ? Buffer.from(json) : json;
    this.addCommon();
    if (hasUnreadBody(this.response.req)) this.closeAfter();
    this.headers.push('content-type', 'application/json', 'content-length', String(body.length));
    this.response.writeHead(status, this.headers);
    this.end(body);
  }

  /** @param last a string has one character a byte */
  private end(last: Buffer | string): void {
    this.ended = true;
    // It refers to the backend's answer, which would stay in memory for as long as the client does not read.
    this.relay = null;
    if (this.unread) this.unread.end(this.response, last, this.owner);
    else this.response.end(last, 'latin1');
  }

  /** Answers with what an earlier request got. */
  replay({ isStream, requestId, body }: KeptAnswer): void {
    this.replayed = true;
    if (requestId !== null) this.headers.push(ORIGINAL_ID_HEADER, requestId);
    if (isStream) this.endStream(body.toString('latin1'));
    else this.answer(200, body);
  }

  /** Answers with the error's status and envelope. A stream that has begun gets the envelope as an event, and ends. */
  refuse(error: InferenceError): void {
    if (this.left) return;
    this.refusal = error;
    refusals.count(error.code, this.owner?.plan ?? '');
    if (this.begun) {
      this.endStream(errorEvent(error));
      return;
    }
    this.headers.push(...errorHeaders(error).flat());
    this.answer(error.status, error.toBody());
  }

  /** Closes the connection after the answer. */
  private closeAfter(): void {
    if (!this.headers.includes('connection')) this.headers.push('connection', 'close');
  }

  private refuseAndLeave(): void {
    this.closeAfter();
    this.refuse(stopping());
    this.left = true;
  }

  /** Closes the connection without an answer. */
  destroy(): void {
    this.response.destroy();
  }
}

/** The end of a stream that failed: the envelope as an event, and `[DONE]`. One character a byte. */
export function errorEvent(error: InferenceError): string {
  return `data: ${Buffer.from(error.toBody()).toString('latin1')}\n\ndata: [DONE]\n\n`;
}

/** A duration in OpenAI's form: `120ms`, `1s`, `6m0s`. */
function toDuration(ms: number): string {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
