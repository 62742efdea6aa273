import { applyDecorators, UseFilters } from '@nestjs/common';
import { EventPattern as NestEventPattern, MessagePattern as NestMessagePattern } from '@nestjs/microservices';
import type { GroupOf, Subject, Topic, TopicTypes } from '@tollgate/contracts';
import type { BatchHandler, RequestHandler, MessageValidator } from '../messages';
import { SeamErrors } from './seam-errors';

/** Decorates a method with the signature of `Handler`. Any other method does not compile. */
type HandlerDecorator<Handler> = <Method extends Handler>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** The options of a topic's decorator for the transport. */
export interface TopicExtras {
  group: string;
  validate?: MessageValidator;
}

/**
 * Nest's `@MessagePattern`, typed by the table of subjects: the method answers every request for `subject`. An unknown
 * subject, or a method with another request or reply, does not compile.
 */
export function MessagePattern<S extends Subject>(subject: S): HandlerDecorator<RequestHandler<S>> {
  return decorate(NestMessagePattern(subject));
}

/**
 * Nest's `@EventPattern`, typed by the table of topics: the method takes each batch of the consumer group. A batch is
 * acknowledged after the method returned, and redelivered if it throws. A message that `validate` rejects goes to the
 * dead letters. A group that the topic does not have does not compile.
 */
export function EventPattern<T extends Topic>(
  topic: T,
  group: GroupOf<T>,
  options: { validate?: MessageValidator } = {},
): HandlerDecorator<BatchHandler<TopicTypes[T]>> {
  const extras: TopicExtras = { group, ...options };
  return decorate(NestEventPattern<string>(topic, extras));
}

/** The filter is bound to the method: in the standalone form, a global one would also take HTTP errors. */
function decorate(pattern: MethodDecorator): MethodDecorator & HandlerDecorator<unknown> {
  return applyDecorators(pattern, UseFilters(SeamErrors));
}
