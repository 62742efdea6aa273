import { BaseRpcContext, Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import type { ReplyOf, RequestOf, Subject, Topic, TopicTypes } from '@tollgate/contracts';
import { isObservable, lastValueFrom } from 'rxjs';
import type { Messages } from '../messages';
import type { TopicExtras } from './patterns';
import { stopConsuming } from './stop-consuming';

/**
 * Nest's transport over the messages seam: the implementation of `Messages` carries the patterns of all controllers.
 * - Nest passes on every handler before it calls a lifecycle hook. The seam registers it at once, so a second handler
 *   of a subject, or a group that is not in the table, fails the start.
 * - `MessagesModule` starts the seam, not `listen`: Nest listens after all hooks, and modules publish in theirs.
 * - `close` stops consuming. Nest calls it before the shutdown hooks, in which modules flush.
 */
export class MessagesServer extends Server implements CustomTransportStrategy {
  override readonly transportId = Symbol('tollgate-messages');
  /** The seam logs and redelivers a failed batch. */
  override readonly propagatesEventHandlerErrors = true;

  constructor(private readonly messages: Messages) {
    super();
  }

  override addHandler(
    pattern: string,
    handler: MessageHandler,
    isEventHandler = false,
    extras: Record<string, unknown> = {},
  ): void {
    const context = new BaseRpcContext([pattern]);
    const call = async (data: unknown): Promise<unknown> => {
      const result: unknown = await handler(data, context);
      return isObservable(result) ? lastValueFrom(result, { defaultValue: undefined }) : result;
    };
    if (isEventHandler) this.consume(pattern as Topic, extras as unknown as TopicExtras, call);
    else this.answer(pattern as Subject, call);
  }

  listen(callback: () => void): void {
    callback();
  }

  close(): Promise<void> {
    return stopConsuming(this.messages);
  }

  on(): never {
    throw new Error('the messages have no events of their own');
  }

  /** The seam itself. */
  unwrap<T>(): T {
    return this.messages as T;
  }

  private consume<T extends Topic>(topic: T, extras: TopicExtras, call: (data: unknown) => Promise<unknown>): void {
    const { group, validate } = extras;
    const handler = async (batch: readonly TopicTypes[T][]): Promise<void> => void (await call(batch));
    this.messages.consume(topic, group, handler, validate ? { validate } : {});
  }

  private answer<S extends Subject>(subject: S, call: (data: unknown) => Promise<unknown>): void {
    this.messages.handle(subject, (request: RequestOf<S>) => call(request) as Promise<ReplyOf<S>>);
  }
}
