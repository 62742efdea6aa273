import { type EndedSpan, readTraceparent, Tracer } from '@tollgate/runtime';
import { traceContextOf } from '../../http/trace-context';
import { RequestTrace } from './request-trace';

const CALLER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const REQUEST = { kind: 'chat', id: 'req_1', model: 'sim', owner: null } as const;

class RecordingTracer extends Tracer {
  readonly spans: EndedSpan[] = [];

  constructor(
    private readonly all: boolean,
    readonly slowMs = 60_000,
  ) {
    super();
  }

  keepsNew(): boolean {
    return this.all;
  }

  keeps(): boolean {
    return this.all;
  }

  record(span: EndedSpan): void {
    this.spans.push(span);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const caller = (tracestate?: string) =>
  traceContextOf({ headers: { traceparent: CALLER, ...(tracestate !== undefined && { tracestate }) } });

describe('a request whose trace is not chosen', () => {
  it('passes the caller’s context on, and leaves no span', () => {
    const tracer = new RecordingTracer(false);
    const trace = new RequestTrace(tracer, caller());
    trace.ended('authenticate');
    expect(trace.context).toEqual(caller());
    expect(trace.finish(REQUEST, 'credit_exhausted', null)).toBeNull();
    expect(tracer.spans).toEqual([]);
  });

  it('is kept if it was slow, with the stages that it reached', () => {
    const tracer = new RecordingTracer(false, 0);
    const trace = new RequestTrace(tracer, null);
    trace.ended('authenticate');
    trace.ended('read');
    expect(trace.context).toBeNull();
    const place = readTraceparent(trace.finish(REQUEST, 'credit_held', null));
    expect(tracer.spans.map(({ name, error }) => [name, error])).toEqual([
      ['authenticate', null],
      ['read', null],
      ['POST chat', null],
    ]);
    expect(new Set(tracer.spans.map((span) => span.place.traceId))).toEqual(new Set([place!.traceId]));
  });

  it.each([
    ['upstream_error', 'upstream_error'],
    ['api_error', 'api_error'],
  ] as const)('is kept if it failed by our fault or a backend’s: %s', (outcome, error) => {
    const tracer = new RecordingTracer(false);
    const trace = new RequestTrace(tracer, caller());
    expect(readTraceparent(trace.finish(REQUEST, outcome, null))?.traceId).toBe(caller()!.traceId);
    expect(tracer.spans.at(-1)).toMatchObject({ parentSpanId: '00f067aa0ba902b7', error });
  });
});

describe('a request whose trace is chosen', () => {
  it('tells a backend its own span, and the caller’s state', () => {
    const tracer = new RecordingTracer(true);
    const trace = new RequestTrace(tracer, caller('a=1'));
    const [name, traceparent, ...state] = trace.context!.headers;
    expect([name, state]).toEqual(['traceparent', ['tracestate', 'a=1']]);
    for (const stage of ['authenticate', 'read', 'admit', 'upstream'] as const) trace.ended(stage);
    trace.finish(REQUEST, 'timeout_error', null);
    const call = tracer.spans.find(({ kind }) => kind === 'client')!;
    expect(readTraceparent(traceparent)).toEqual(call.place);
    expect(call.error).toBe('timeout_error');
  });
});
