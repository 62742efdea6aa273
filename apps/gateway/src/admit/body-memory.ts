import { Gauge, metrics } from '@tollgate/runtime';
import { DEFAULT_MAX_BODY_MIB } from '../options';

const MIB = 1024 * 1024;
const LEAST_BODY_BYTES_PER_KEY = 32 * MIB;
/** Bodies of the largest size that a key may have in progress. */
const LARGEST_BODIES_PER_KEY = 3;
export const DEFAULT_BODY_MEMORY_MIB = 256;

const held = new Gauge({
  name: 'tollgate_body_bytes',
  help: 'Bytes reserved for request bodies in progress: their announced length, or what was received',
  registers: [metrics],
});

/** The limit that has no room left: that of the key, or that of all keys. */
export type FullBudget = 'key' | 'all';

/**
 * Limits the memory of request bodies, for each key and for all keys. The announced length is reserved before any of
 * the body is read.
 */
export class BodyMemory {
  readonly maxBytesPerKey: number;
  /** The limit of one body. Not more than fits into the memory. */
  readonly maxBytesPerBody: number;
  private readonly maxBytes: number;
  private bytes = 0;
  private readonly bytesOfKeys = new Map<string, number>();

  constructor({
    maxBytes = DEFAULT_BODY_MEMORY_MIB * MIB,
    maxBytesPerBody = DEFAULT_MAX_BODY_MIB * MIB,
    maxBytesPerKey = Math.max(LEAST_BODY_BYTES_PER_KEY, LARGEST_BODIES_PER_KEY * maxBytesPerBody),
  } = {}) {
    this.maxBytes = maxBytes;
    this.maxBytesPerKey = Math.min(maxBytesPerKey, maxBytes);
    this.maxBytesPerBody = Math.min(maxBytesPerBody, this.maxBytesPerKey);
  }

  /** The share of one request. It is empty at first. */
  open(keyId: string): BodyShare {
    return new BodyShare(this.maxBytesPerBody, (bytes) => this.take(keyId, bytes));
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

/** The memory that one request has reserved. */
export class BodyShare {
  bytes = 0;

  /** @param maxBytes the largest body */
  constructor(
    readonly maxBytes: number,
    private readonly take: (bytes: number) => FullBudget | null,
  ) {}

  /**
   * Grows the share to at least this many bytes. Null on success. Otherwise the full limit, and the share is unchanged.
   */
  growTo(bytes: number): FullBudget | null {
    if (bytes <= this.bytes) return null;
    const full = this.take(bytes - this.bytes);
    if (full === null) this.bytes = bytes;
    return full;
  }

  /** Releases the whole share. Repeated calls have no effect. */
  release(): void {
    if (this.bytes === 0) return;
    this.take(-this.bytes);
    this.bytes = 0;
  }
}
