/** An answer as its client got it, or would have got it. Its status is 200: nothing else is kept. */
export interface KeptAnswer {
  /** The model's id, for the metrics. */
  readonly model: string;
  readonly isStream: boolean;
  /** Our id of the request that it answered. Null: kept by a version that did not store it. */
  readonly requestId: string | null;
  readonly body: Buffer;
}

const HEAD_END = 0x0a;

/** A line of JSON, then the body. */
export function encodeAnswer({ model, isStream, requestId, body }: KeptAnswer): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ model, isStream, requestId })}\n`), body]);
}

export function decodeAnswer(bytes: Buffer): KeptAnswer {
  const end = bytes.indexOf(HEAD_END);
  const head = JSON.parse(bytes.toString('utf8', 0, end)) as Omit<KeptAnswer, 'body' | 'requestId'> & {
    requestId?: string;
  };
  const { model, isStream, requestId = null } = head;
  return { model, isStream, requestId, body: bytes.subarray(end + 1) };
}

/** Gathers what a stream sends, up to a bound. */
export class AnswerRecorder {
  private parts: string[] | null = [];
  private bytes = 0;

  constructor(private readonly maxBytes: number) {}

  /** One character a byte. Comments, which keep a connection open, are not a part of the answer. */
  add(latin1: string): void {
    if (this.parts === null || latin1.startsWith(':')) return;
    this.bytes += latin1.length;
    if (this.bytes > this.maxBytes) this.parts = null;
    else this.parts.push(latin1);
  }

  /** With the last bytes. Null: too large. */
  withEnd(end: string | Buffer): Buffer | null {
    if (this.parts === null || this.bytes + end.length > this.maxBytes) return null;
    const last = typeof end === 'string' ? Buffer.from(end, 'latin1') : end;
    return Buffer.concat([Buffer.from(this.parts.join(''), 'latin1'), last]);
  }
}
