import { Gauge, metrics } from '@tollgate/runtime';

const MIB = 1024 * 1024;
/** Three of the largest bodies. */
export const MAX_BODY_BYTES_PER_KEY = 32 * MIB;
export const DEFAULT_BODY_MEMORY_MIB = 256;

const held = new Gauge({
  name: 'tollgate_body_bytes',
  help: 'Bytes of request bodies that are being read or kept, as announced or as received',
  registers: [metrics],
});

/** Whose budget has no room. */
export type FullBudget = 'key' | 'all';

/**
 * The memory of request bodies is a budget, of each key and of all: what is announced is taken at once, before any of
 * it is read.
 */
export class BodyMemory {
  readonly maxBytesPerKey: number;
  private readonly maxBytes: number;
  private bytes = 0;
  private readonly bytesOfKeys = new Map<string, number>();

  constructor({ maxBytes = DEFAULT_BODY_MEMORY_MIB * MIB, maxBytesPerKey = MAX_BODY_BYTES_PER_KEY } = {}) {
    this.maxBytes = maxBytes;
    this.maxBytesPerKey = Math.min(maxBytesPerKey, maxBytes);
  }

  /** Of one request: holds nothing yet. */
  open(keyId: string): BodyShare {
    return new BodyShare((bytes) => this.take(keyId, bytes));
  }

  private take(keyId: string, bytes: number): FullBudget | null {
    const ofKey = (this.bytesOfKeys.get(keyId) ?? 0) + bytes;
    if (bytes > 0 && ofKey > this.maxBytesPerKey) return 'key';
    if (bytes > 0 && this.bytes + bytes > this.maxBytes) return 'all';
    if (ofKey > 0) this.bytesOfKeys.set(keyId, ofKey);
    else this.bytesOfKeys.delete(keyId);
    this.bytes += bytes;
    held.inc(bytes);
    return null;
  }
}

/** What one request holds of the budgets. */
export class BodyShare {
  bytes = 0;

  constructor(private readonly take: (bytes: number) => FullBudget | null) {}

  /** Null: it holds so many bytes now, at least. Otherwise it holds what it held. */
  growTo(bytes: number): FullBudget | null {
    if (bytes <= this.bytes) return null;
    const full = this.take(bytes - this.bytes);
    if (full === null) this.bytes = bytes;
    return full;
  }

  /** Gives all of it back; once is enough. */
  release(): void {
    if (this.bytes === 0) return;
    this.take(-this.bytes);
    this.bytes = 0;
  }
}
