import type { Backend, CatalogModel } from '../catalog/catalog';
import type { Connections } from './connections';
import type { UpstreamFailure } from './failure';
import type { Fleet, ManagedBackend } from './fleet';

export interface UpstreamCall {
  model: CatalogModel;
  /** Appended to the backend's base path: `/chat/completions`. */
  path: string;
  stream: boolean;
  /** Builds the body for a backend. */
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
 * Receives the answer. Calls come in order: `onHead`, `onData`, then exactly one of `onEnd` and `onFailure`. After a
 * successful `restart` they come again from the beginning. None comes after `abort`.
 */
export interface AnswerSink {
  /** A 2xx head arrived. */
  onHead(): void;
  /** Returns false to get no more data until `resume`. A stream's chunk is valid during the call only. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
  /** Forgets the answer so far. False: a part of it has reached the client, so no other may follow. */
  restart(): boolean;
}
