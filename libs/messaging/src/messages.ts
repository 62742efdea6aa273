import type { ReplyOf, RequestOf, Service, Subject, Topic, TopicTypes } from '@tollgate/contracts';
import type { EntityManager } from 'typeorm';

/** The maximum size of a consumed batch. Handlers may rely on it. */
export const MAX_BATCH_MESSAGES = 1_000;
/**
 * The batching delay of consumers and outboxes, in milliseconds. A batch costs several transactions, whatever its size.
 * So a batch that was not full is followed by the next one after this time (Kafka: after twice this time). The first
 * message after a pause does not wait.
 */
export const BATCHING_DELAY_MS = 50;
export const DEFAULT_REQUEST_DEADLINE_MS = 3_000;

export interface RequestOptions {
  deadlineMs?: number;
}

export type BatchHandler<T> = (messages: readonly T[]) => Promise<void>;
/** The reason why this consumer cannot handle a message, which may be anything; null if it can. */
export type MessageValidator = (data: unknown) => string | null;
export type RequestHandler<S extends Subject> = (request: RequestOf<S>) => Promise<ReplyOf<S>>;

/**
 * These messages can never be published as they are: the topic is unknown, or the store rejects their form. A repeat of
 * the call fails in the same way.
 */
export class MessagesRefusedError extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = 'MessagesRefusedError';
  }
}

/** Publishes in the transactions of services whose data are in the store's own database. */
export interface TransactionalPublisher {
  services: readonly Service[];
  /**
   * Publishes if and only if the transaction commits, with the guarantees of `Messages.publish`. Then call `announce`.
   * False: messages are not started, and nothing was written.
   */
  publish<T extends Topic>(tx: EntityManager, topic: T, messages: readonly TopicTypes[T][]): Promise<boolean>;
  /** Wakes consumers. Without it they look once a second. */
  announce(topics: Iterable<Topic>): void;
}

/** The requesting part of the seam. `ServiceClient` implements it too. */
export type Requests = Pick<Messages, 'request'>;

/**
 * The messages seam: how services talk. Two implementations pass one conformance suite (`messages.suite.ts`):
 * PostgreSQL (a table; request–reply in process) for the standalone form, and Kafka for the distributed form.
 * An abstract class, not an interface, so that Nest can inject it.
 */
export abstract class Messages {
  /**
   * Durable when it returns. Delivers at least once to every group of the topic, in order for each key. All messages of
   * a call are published, or none. After an error, publish again: the ids inside the messages make repeats harmless.
   * UnavailableError: the store cannot be reached, so try again. MessagesRefusedError: do not try again.
   */
  abstract publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void>;

  /** Where the store is the services' own database: publishing in their transactions, without an outbox. */
  readonly transactional?: TransactionalPublisher;

  /**
   * Passes batches to the handler, one at a time (at most MAX_BATCH_MESSAGES, in order for each key). A batch is
   * acknowledged only after the handler returned. If it throws, the same messages are redelivered with backoff, and
   * nothing of the same key overtakes them.
   * A message that cannot be read, or that `validate` rejects, is quarantined with the reason (`dead`) and blocks no
   * other.
   * Register before `start`.
   */
  abstract consume<T extends Topic>(
    topic: T,
    group: string,
    handler: BatchHandler<TopicTypes[T]>,
    options?: { validate?: MessageValidator },
  ): void;

  /**
   * Resolves to the reply. Rejects with a RequestError of the handler, or with an UnavailableError at the deadline or
   * if no handler exists. Never hangs. MessagesRefusedError: the request is too large for the store.
   */
  abstract request<S extends Subject>(subject: S, request: RequestOf<S>, options?: RequestOptions): Promise<ReplyOf<S>>;

  /** Register before `start`, one handler for each subject. */
  abstract handle<S extends Subject>(subject: S, handler: RequestHandler<S>): void;

  abstract start(): Promise<void>;

  /**
   * Finishes the batches and requests in progress, acknowledges them, and accepts no more. `publish` and this process's
   * own `request` work until `close`.
   */
  abstract stopConsuming(): Promise<void>;

  abstract close(): Promise<void>;
}
