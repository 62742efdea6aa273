import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Value {
  stringValue?: string;
  intValue?: number | string;
  doubleValue?: number;
}

interface RawSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Value }[];
  events?: { name: string; timeUnixNano: string }[];
  status?: { code?: number };
}

export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  /** Empty: the first span of its trace. */
  parentSpanId: string;
  name: string;
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  events: { name: string; atNs: bigint }[];
  failed: boolean;
}

const STATUS_ERROR = 2;

/** Receives traces by OTLP over HTTP, as a collector does. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** Everything that was received, as text. */
  text = '';
  private constructor(private readonly server: Server) {}

  static async start(): Promise<OtlpReceiver> {
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        receiver.take(Buffer.concat(parts).toString('utf8'));
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    const receiver = new OtlpReceiver(server);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1/traces`;
  }

  /** Its spans, the earliest first. */
  ofTrace(traceId: string): ReceivedSpan[] {
    return this.spans
      .filter((span) => span.traceId === traceId)
      .sort((a, b) => (a.startNs < b.startNs ? -1 : a.startNs > b.startNs ? 1 : 0));
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private take(body: string): void {
    this.text += body;
    const { resourceSpans } = JSON.parse(body) as {
      resourceSpans: { resource: { attributes: RawSpan['attributes'] }; scopeSpans: { spans: RawSpan[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(valuesOf(resource.attributes)['service.name']);
      for (const span of scopeSpans.flatMap(({ spans }) => spans))
        this.spans.push({
          service,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId ?? '',
          name: span.name,
          startNs: BigInt(span.startTimeUnixNano),
          endNs: BigInt(span.endTimeUnixNano),
          attributes: valuesOf(span.attributes),
          events: (span.events ?? []).map(({ name, timeUnixNano }) => ({ name, atNs: BigInt(timeUnixNano) })),
          failed: span.status?.code === STATUS_ERROR,
        });
    }
  }
}

function valuesOf(attributes: RawSpan['attributes']): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.doubleValue ?? Number(value.intValue)]),
  );
}
