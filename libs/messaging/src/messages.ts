import type { ReplyOf, RequestOf, Subject, Topic, TopicTypes } from '@tollgate/contracts';

/** One consumed batch at the most; a handler may rely on it. */
export const MAX_BATCH_MESSAGES = 1_000;
export const DEFAULT_REQUEST_DEADLINE_MS = 3_000;

export interface RequestOptions {
  deadlineMs?: number;
}

export type BatchHandler<T> = (messages: readonly T[]) => Promise<void>;
/** Why a message, whatever it is, cannot be handled by this consumer; null when it can. */
export type WhyNot = (data: unknown) => string | null;
export type RequestHandler<S extends Subject> = (request: RequestOf<S>) => Promise<ReplyOf<S>>;

/**
 * These messages can never be published as they are: an unknown topic, or a form that the store does not take. The same
 * call again fails in the same way.
 */
export class MessagesRefusedError extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = 'MessagesRefusedError';
  }
}

/** The part of the seam that asks. `ServiceClient` is one too. */
export type Requests = Pick<Messages, 'request'>;

/**
 * The messages seam: how the services talk. Two implementations pass one conformance suite (`messages.suite.ts`):
 * Postgres (pg-boss; request–reply in process) for the standalone form, Kafka for the distributed one.
 *
 * An abstract class, not an interface, so that Nest can inject by it.
 */
export abstract class Messages {
  /**
   * Durable when it returns. At least once to every group of the topic, in order per key. All of one call or nothing
   * (an error: publish again; the ids inside the messages make repeats harmless). UnavailableError: the store cannot be
   * reached, try again. MessagesRefusedError: do not.
   */
  abstract publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void>;

  /**
   * Hands batches (at most MAX_BATCH_MESSAGES, in order per key) to the handler, one at a time. A batch is acknowledged
   * only after the handler returned; when it throws, the same messages come again with backoff, and nothing of the same
   * key overtakes them. A message that cannot be read, or for which `validate` gives a reason, is quarantined with it
   * (`dead`) and blocks nobody. Register before `start`.
   */
  abstract consume<T extends Topic>(
    topic: T,
    group: string,
    handler: BatchHandler<TopicTypes[T]>,
    options?: { validate?: WhyNot },
  ): void;

  /**
   * The answer, a RequestError of the handler, or an UnavailableError at the deadline or when nobody handles the
   * subject; never a hang. MessagesRefusedError: the request is too large for the store.
   */
  abstract request<S extends Subject>(subject: S, request: RequestOf<S>, options?: RequestOptions): Promise<ReplyOf<S>>;

  /** Register before `start`; one handler a subject. */
  abstract handle<S extends Subject>(subject: S, handler: RequestHandler<S>): void;

  abstract start(): Promise<void>;

  /**
   * Finishes the batches and the other processes' requests in hand, acknowledges them, and takes no more. `publish` and
   * one's own `request` go on working until `close`.
   */
  abstract stopConsuming(): Promise<void>;

  abstract close(): Promise<void>;
}
