/** An answer as its client got it, or would have got it. Its status is 200: nothing else is kept. */
export interface KeptAnswer {
  /** The model's id, for the metrics. */
  readonly model: string;
  readonly isStream: boolean;
  readonly body: Buffer;
}

const HEAD_END = 0x0a;

/** A line of JSON, then the body. */
export function encodeAnswer({ model, isStream, body }: KeptAnswer): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ model, isStream })}\n`), body]);
}

export function decodeAnswer(bytes: Buffer): KeptAnswer {
  const end = bytes.indexOf(HEAD_END);
  const { model, isStream } = JSON.parse(bytes.toString('utf8', 0, end)) as Omit<KeptAnswer, 'body'>;
  return { model, isStream, body: bytes.subarray(end + 1) };
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
