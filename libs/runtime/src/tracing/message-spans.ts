import { newSpanId, readTraceparent } from './trace-ids';
import type { Tracer } from './tracer';

/** What may be a message with the place of its request in a trace. */
interface Traced {
  traceparent?: unknown;
  id?: unknown;
}

/** Who handled which messages, and since when (milliseconds since 1970). */
export interface Handled {
  topic: string;
  group: string;
  startMs: number;
}

/** Records a span for each message of a kept trace that a consumer has handled. Call it after the commit. */
export function traceMessages(
  tracer: Tracer | null | undefined,
  messages: readonly unknown[],
  { topic, group, startMs }: Handled,
): void {
  if (!tracer) return;
  const endMs = Date.now();
  for (const message of messages) {
    const { traceparent, id } = (message ?? {}) as Traced;
    if (traceparent === undefined) continue;
    const request = readTraceparent(traceparent);
    if (!request) continue;
    tracer.record({
      name: `process ${topic}`,
      kind: 'consumer',
      place: { traceId: request.traceId, spanId: newSpanId() },
      parentSpanId: request.spanId,
      startMs,
      endMs,
      attributes: {
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'process',
        'messaging.destination.name': topic,
        'messaging.consumer.group.name': group,
        'messaging.batch.message_count': messages.length,
        ...(typeof id === 'string' && { 'tollgate.request.id': id }),
      },
    });
  }
}
