import type { Backend, CatalogModel } from '../../catalog/catalog';
import type { AttemptRequest } from './attempt';
import type { Connections, UpstreamLimits } from '../fleet/connections';
import type { UpstreamFailure } from './failure';
import type { Fleet, ManagedBackend } from '../fleet/fleet';
import type { TotalTime } from './total-time';

export interface UpstreamCall {
  model: CatalogModel;
  /** Models that are asked in this order, each once its predecessor cannot serve. */
  fallbacks: readonly CatalogModel[];
  /** Appended to the backend's base path: `/chat/completions`. */
  path: string;
  stream: boolean;
  /** Calls with the same one should go to the same backend (fleet/rendezvous.ts). Null: to any. */
  affinity: number | null;
  /** Whether the request may be the reason why a backend of the model fails, as it has what the model may lack. */
  mayBeAtFault: (model: CatalogModel) => boolean;
  /** Builds the body for a backend of the model. */
  body: (backend: Backend) => Buffer | string;
  /** Sent to every backend: names and values in turn. */
  headers: readonly string[];
  /** The request's fields for the log. */
  request: { readonly logged: object };
}

/** What all calls of the process share. */
export interface Resources {
  readonly connections: Connections;
  readonly fleet: Fleet;
  /** Finds out in the background when an unreachable backend is back. */
  lookFor(managed: ManagedBackend): void;
}

/**
 * Receives the answer. Calls come in order: `onHead`, `onData`, then exactly one of `onEnd` and `onFailure`. After
 * `restart` they come again from the beginning, perhaps from a fallback. None comes after `abort`.
 */
export interface AnswerSink {
  /** A 2xx head arrived. The time for all attempts ends at `endsAtMs` (`performance.now()`). */
  onHead(endsAtMs: number): void;
  /** Returns false to get no more data until `resume`. A stream's chunk is valid during the call only. */
  onData(chunk: Buffer): boolean;
  /** The answer is complete. A plain one must be read by `endsAtMs` (`performance.now()`). */
  onEnd(endsAtMs: number): void;
  onFailure(failure: UpstreamFailure): void;
  /**
   * Another model is asked from now on: one of the call's fallbacks. Comes only while nothing has reached the client.
   */
  onFallback(model: CatalogModel): void;
  /** False: a part of the answer has reached the client, so no other may follow. */
  mayRestart(): boolean;
  /** Forgets the answer so far. Only after `mayRestart`. */
  restart(): void;
}

/** What a backend of the model gets of a call, within the time that is left. */
export function attemptRequest(
  call: UpstreamCall,
  model: CatalogModel,
  backend: Backend,
  limits: UpstreamLimits,
  { leftMs, isShort }: TotalTime,
): AttemptRequest {
  const { firstByteMs, idleMs } = backend.timeouts;
  const ownIdleMs = idleMs ?? limits.idleTimeoutMs;
  const headMs = firstByteMs ?? (call.stream ? limits.streamHeadTimeoutMs : limits.plainHeadTimeoutMs);
  return {
    path: call.path,
    stream: call.stream,
    headers: headersFor(backend, call),
    body: call.body(backend),
    headTimeoutMs: Math.min(headMs, leftMs),
    idleTimeoutMs: Math.min(ownIdleMs, leftMs),
    isShort: isShort && leftMs < Math.max(headMs, ownIdleMs),
    staleCloseMs: limits.staleCloseMs,
    mayBeAtFault: call.mayBeAtFault(model),
  };
}

/** Names and values in turn. */
function headersFor({ authorization, headers: own }: Backend, { stream, headers }: UpstreamCall): string[] {
  const all = ['content-type', 'application/json', 'accept', stream ? 'text/event-stream' : 'application/json'];
  if (authorization !== null) all.push('authorization', authorization);
  if (own.length > 0) all.push(...own);
  if (headers.length > 0) all.push(...headers);
  return all;
}
