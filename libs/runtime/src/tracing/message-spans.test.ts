import { traceMessages } from './message-spans';
import type { EndedSpan, Tracer } from './tracer';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const HANDLED = { topic: 'charges', group: 'billing', startMs: 1 };

it('a span is recorded for each message with a trace, whatever is in the place of its id', () => {
  const spans: EndedSpan[] = [];
  const tracer = { record: (span: EndedSpan) => spans.push(span) } as unknown as Tracer;
  // Neither can become a text, and the batch is committed.
  const noText = ['{"toString":1}', `${'['.repeat(20_000)}${']'.repeat(20_000)}`].map((id): unknown => JSON.parse(id));
  const messages = ['req_1', ...noText].map((id) => ({ id, traceparent }));
  traceMessages(tracer, [...messages, { id: 'req_2' }, { id: 'req_3', traceparent: 'x' }], HANDLED);
  expect(spans.map(({ attributes }) => attributes['tollgate.request.id'])).toEqual(['req_1', undefined, undefined]);
});
