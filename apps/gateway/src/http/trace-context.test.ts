import { traceContextOf } from './trace-context';

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const of = (traceparent: string, tracestate?: string) =>
  traceContextOf({ headers: { traceparent, ...(tracestate !== undefined && { tracestate }) } });

describe('the trace context of a request', () => {
  it('is passed on with its state, and its id is for the log', () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    expect(of(PARENT)).toEqual({ traceId, headers: ['traceparent', PARENT] });
    expect(of(PARENT, 'a=1,b=2')).toEqual({ traceId, headers: ['traceparent', PARENT, 'tracestate', 'a=1,b=2'] });
    expect(of(PARENT, 'ü')).toEqual({ traceId, headers: ['traceparent', PARENT] });
    expect(of(`01${PARENT.slice(2)}-more`)?.traceId).toBe(traceId);
  });

  it.each([
    'x',
    PARENT.toUpperCase(),
    `ff${PARENT.slice(2)}`,
    PARENT.replace(/4bf9\w+/, '0'.repeat(32)),
    PARENT.replace(/-00f0\w+/, `-${'0'.repeat(16)}`),
    `${PARENT}\r\nx: y`,
  ])('is ignored if it is not valid: %j', (traceparent) => expect(of(traceparent)).toBeNull());
});
