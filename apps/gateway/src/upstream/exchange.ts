import { logger } from '@tollgate/runtime';
import type { Client, Dispatcher } from 'undici';
import type { Backend, CatalogModel } from '../catalog/catalog';
import type { Connections, UpstreamLimits } from './connections';
import { failureOfError, failureOfStatus, mayRetry, type UpstreamFailure } from './failure';

/** Backends (or connections) tried for one request, in all. */
const MAX_ATTEMPTS = 3;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

export interface UpstreamCall {
  model: CatalogModel;
  /** After the backend's base path: `/chat/completions`. */
  path: string;
  stream: boolean;
  /** The body for a backend where the model has this name. */
  body: (backendModel: string) => Buffer | string;
}

/** Who gets the answer. Calls come in order: `onHead` at most once, data, then exactly one of `onEnd` and `onFailure`; none after `abort`. */
export interface AnswerSink {
  /** A 2xx: from here on there is no other attempt. */
  onHead(): void;
  /** False: no more until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

/**
 * One request to a model: a backend by weight, another one where that may help, until an answer begins. undici's dispatch with this object as the handler:
 * no streams, no signals, no promises in between.
 *
 * States: waiting (no head yet; attempts may follow) → answering → ended; `abort` ends it from anywhere, also before the connection stands.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  private readonly untried: Backend[];
  private backend!: Backend;
  private client: Client | null = null;
  private reused = false;
  private controller: Dispatcher.DispatchController | null = null;
  private attempts = 0;
  private state: 'waiting' | 'answering' | 'ended' = 'waiting';
  private errorStatus = 0;
  private retryAfter: string | undefined;
  private errorBody: Buffer[] = [];
  private errorBytes = 0;
  /** Names of the backends that may have begun the request, in the order asked: the last one is who answers. */
  readonly begun: string[] = [];

  constructor(
    private readonly connections: Connections,
    private readonly limits: UpstreamLimits,
    private readonly call: UpstreamCall,
    private readonly sink: AnswerSink,
  ) {
    this.untried = [...call.model.backends];
  }

  /** The one asked last: for the log. */
  get backendUrl(): string {
    return this.backend.origin + this.backend.basePath;
  }

  start(): void {
    this.backend = takeByWeight(this.untried);
    this.attempt();
  }

  /** The client has gone, or the answer is at its end: the backend is told by closing the connection. */
  abort(): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    // Before the connection stands there is no controller: onRequestStart aborts then.
    this.controller?.abort(new Error('aborted by the gateway'));
  }

  pause(): void {
    if (this.state !== 'ended') this.controller?.pause();
  }

  resume(): void {
    if (this.state !== 'ended') this.controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.state === 'ended') controller.abort(new Error('aborted by the gateway'));
    else this.begun.push(this.backend.name);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200 || this.state === 'ended') return;
    const encoding = headers['content-encoding'];
    if (status < 300 && (encoding === undefined || encoding === 'identity')) {
      this.state = 'answering';
      this.sink.onHead();
      return;
    }
    this.errorStatus = status < 300 ? 502 : status;
    this.retryAfter = headers['retry-after'] as string | undefined;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.state === 'ended') return;
    if (this.errorStatus === 0) {
      if (!this.sink.onData(chunk)) controller.pause();
      return;
    }
    if (this.errorBytes < MAX_ERROR_BODY_BYTES) this.errorBody.push(chunk);
    this.errorBytes += chunk.length;
    if (this.errorBytes >= MAX_ERROR_BODY_BYTES) controller.abort(new Error('the error is too long'));
  }

  onResponseEnd(): void {
    this.giveBack();
    if (this.state === 'ended') return;
    if (this.errorStatus !== 0)
      this.fail(
        failureOfStatus(this.errorStatus, this.retryAfter, Buffer.concat(this.errorBody).toString('utf8')),
        true,
      );
    else {
      this.state = 'ended';
      this.sink.onEnd();
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.giveBack();
    if (this.state === 'ended') return;
    if (this.errorStatus !== 0) this.fail(failureOfStatus(this.errorStatus, this.retryAfter, ''), true);
    else this.fail(failureOfError(error), this.controller !== null);
  }

  private attempt(): void {
    this.attempts += 1;
    this.controller = null;
    this.errorStatus = 0;
    this.errorBody = [];
    this.errorBytes = 0;
    const taken = this.connections.take(this.backend.origin);
    if (!taken) return this.fail({ kind: 'busy', retryAfterSeconds: null }, false);
    this.client = taken.client;
    this.reused = taken.used;
    const headers = [
      'content-type',
      'application/json',
      'accept',
      this.call.stream ? 'text/event-stream' : 'application/json',
    ];
    if (this.backend.authorization !== null) headers.push('authorization', this.backend.authorization);
    this.client.dispatch(
      {
        path: this.backend.basePath + this.call.path,
        method: 'POST',
        headers,
        body: this.call.body(this.backend.model),
        headersTimeout: this.call.stream ? this.limits.streamHeadTimeoutMs : this.limits.plainHeadTimeoutMs,
        bodyTimeout: this.limits.idleTimeoutMs,
      },
      this,
    );
  }

  /** @param connected the request may have reached the backend */
  private fail(failure: UpstreamFailure, connected: boolean): void {
    // A kept connection that the backend had closed in the meantime: the request was never read, and the backend is well.
    const stale =
      this.reused &&
      connected &&
      this.errorStatus === 0 &&
      failure.kind === 'failed' &&
      CLOSED_BY_PEER.has(failure.reason);
    // It says that it did not begin.
    const refused = this.errorStatus >= 400 && this.errorStatus < 500 && failure.kind !== 'timeout';
    if (connected && (stale || refused || failure.kind === 'busy')) this.begun.pop();
    if (this.state === 'waiting' && this.attempts < MAX_ATTEMPTS && (stale || mayRetry(failure, connected))) {
      if (stale) return this.attempt();
      if (this.untried.length === 0) return this.end(failure);
      const { model } = this.call;
      logger('gateway').warn(
        { model: model.id, backend: this.backendUrl, ...failure },
        'a backend failed; asking another',
      );
      this.backend = takeByWeight(this.untried);
      return this.attempt();
    }
    this.end(failure);
  }

  private end(failure: UpstreamFailure): void {
    this.state = 'ended';
    this.sink.onFailure(failure);
  }

  private giveBack(): void {
    if (this.client) this.connections.give(this.backend.origin, this.client);
    this.client = null;
  }
}

/** Takes one backend out of the list, at random by weight. */
export function takeByWeight(backends: Backend[], random = Math.random()): Backend {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  let left = random * total;
  const index = backends.findIndex(({ weight }) => (left -= weight) < 0);
  return backends.splice(index === -1 ? backends.length - 1 : index, 1)[0]!;
}
