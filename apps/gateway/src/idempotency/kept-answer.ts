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

/** Memory is reserved in steps of this size, because a stream comes in many small parts. */
const RESERVED_STEP_BYTES = 16 * 1024;

/** Gathers what a stream sends, up to a bound and as long as there is memory for it. */
export class AnswerRecorder {
  private parts: string[] | null = [];
  private bytes = 0;
  private reservedBytes = 0;

  /** @param reserve called with the bytes that all of it may take from then on. False: there is no memory for them */
  constructor(
    private readonly maxBytes: number,
    private readonly reserve: (bytes: number) => boolean,
  ) {}

  /** One character a byte. Comments, which keep a connection open, are not a part of the answer. */
  add(latin1: string): void {
    if (this.parts === null || latin1.startsWith(':')) return;
    this.bytes += latin1.length;
    if (this.bytes > this.maxBytes || !this.hasMemory()) this.parts = null;
    else this.parts.push(latin1);
  }

  /** With the last bytes. Null: too large, or there was no memory for it. */
  withEnd(end: string | Buffer): Buffer | null {
    if (this.parts === null || this.bytes + end.length > this.maxBytes) return null;
    const last = typeof end === 'string' ? Buffer.from(end, 'latin1') : end;
    return Buffer.concat([Buffer.from(this.parts.join(''), 'latin1'), last]);
  }

  private hasMemory(): boolean {
    if (this.bytes <= this.reservedBytes) return true;
    const steps = Math.ceil(this.bytes / RESERVED_STEP_BYTES);
    this.reservedBytes = Math.min(steps * RESERVED_STEP_BYTES, this.maxBytes);
    return this.reserve(this.reservedBytes);
  }
}
