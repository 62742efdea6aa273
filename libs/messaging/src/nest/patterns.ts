import { applyDecorators, UseFilters } from '@nestjs/common';
import { EventPattern as NestEventPattern, MessagePattern as NestMessagePattern } from '@nestjs/microservices';
import type { Subject, Topic, TopicTypes } from '@tollgate/contracts';
import type { BatchHandler, RequestHandler, WhyNot } from '../messages';
import { SeamErrors } from './seam-errors';

/** Decorates a method that takes and returns what `Handler` does. Another method does not compile. */
type HandlerDecorator<Handler> = <Method extends Handler>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** What the decorator of a topic tells the transport. */
export interface TopicExtras {
  group: string;
  validate?: WhyNot;
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
 * acknowledged after the method returned, and redelivered when it throws. A message for which `validate` gives a reason
 * goes to the dead letters instead. The group is checked at the start, against `TOPICS`.
 */
export function EventPattern<T extends Topic>(
  topic: T,
  group: string,
  options: { validate?: WhyNot } = {},
): HandlerDecorator<BatchHandler<TopicTypes[T]>> {
  const extras: TopicExtras = { group, ...options };
  return decorate(NestEventPattern<string>(topic, extras));
}

/** The filter is bound to the method: in the standalone form, a global one would take the errors of HTTP as well. */
function decorate(pattern: MethodDecorator): MethodDecorator & HandlerDecorator<unknown> {
  return applyDecorators(pattern, UseFilters(SeamErrors));
}
