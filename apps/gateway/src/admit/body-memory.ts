import { Gauge, metrics } from '@tollgate/runtime';
import { DEFAULT_MAX_BODY_MIB } from '../options';
import { ArrivingAnswers } from './arriving-answers';
import { type FullBudget, MemoryBudget, type MemoryOwner } from './memory-budget';

const MIB = 1024 * 1024;
const LEAST_BODY_BYTES_PER_KEY = 32 * MIB;
/** Bodies of the largest size that a key may have in progress. */
const LARGEST_BODIES_PER_KEY = 3;
export const DEFAULT_BODY_MEMORY_MIB = 256;
/** A tenant may have a quarter of the memory, whatever its number of keys is. */
const TENANTS_AT_LEAST = 4;

const held = new Gauge({
  name: 'tollgate_body_bytes',
  help: 'Bytes reserved for request bodies in progress: their length while they are read, then the part that is kept',
  registers: [metrics],
});

const unread = new Gauge({
  name: 'tollgate_unread_answer_bytes',
  help: 'Bytes of long answers, by state: arriving (their clients do not get them yet), sent (but not read yet)',
  labelNames: ['state'] as const,
  registers: [metrics],
});
const arrivingBytes = unread.labels('arriving');
const sentBytes = unread.labels('sent');
// Shown from the start.
for (const bytes of [arrivingBytes, sentBytes]) bytes.set(0);
/** Beyond these, requests are refused. The answers of requests in progress may exceed them. */
const UNREAD_ANSWER_LIMITS = { perKey: 32 * MIB, perTenant: 64 * MIB, all: 256 * MIB };
/** Beyond these, backends have to wait. */
export const ARRIVING_ANSWER_LIMITS = { perTenant: 64 * MIB, all: 256 * MIB };

/**
 * Limits the memory of request bodies, for each key, for each tenant and for all tenants. The announced length is
 * reserved before any of the body is read. Also limits the answers that arrive, and counts those that clients have not
 * read.
 */
export class BodyMemory {
  /** The limit of one body. Not more than fits into the memory. */
  readonly maxBytesPerBody: number;
  /** The long answers that clients have not read yet. */
  readonly answers: MemoryBudget;
  /** The large plain answers that clients do not get yet. */
  readonly arriving: ArrivingAnswers;
  private readonly budget: MemoryBudget;

  constructor({
    maxBytes = DEFAULT_BODY_MEMORY_MIB * MIB,
    maxBytesPerBody = DEFAULT_MAX_BODY_MIB * MIB,
    maxBytesPerKey = Math.max(LEAST_BODY_BYTES_PER_KEY, LARGEST_BODIES_PER_KEY * maxBytesPerBody),
    answers = UNREAD_ANSWER_LIMITS,
    arriving = ARRIVING_ANSWER_LIMITS,
  } = {}) {
    this.answers = new MemoryBudget(answers, sentBytes);
    // The keys of a tenant share its limit.
    this.arriving = new ArrivingAnswers(new MemoryBudget({ perKey: arriving.perTenant, ...arriving }, arrivingBytes));
    const perKey = Math.min(maxBytesPerKey, maxBytes);
    const perTenant = Math.max(perKey, maxBytes / TENANTS_AT_LEAST);
    this.budget = new MemoryBudget({ perKey, perTenant, all: maxBytes }, held);
    this.maxBytesPerBody = Math.min(maxBytesPerBody, perKey);
  }

  /** Of request bodies. */
  get limits(): MemoryBudget['limits'] {
    return this.budget.limits;
  }

  /** The share of one request. It is empty at first. */
  open(owner: MemoryOwner): BodyShare {
    return new BodyShare(this.maxBytesPerBody, this.budget, owner);
  }
}

/** The memory that one request has reserved. */
export class BodyShare {
  bytes = 0;

  /** @param maxBytes the largest body */
  constructor(
    readonly maxBytes: number,
    private readonly budget: MemoryBudget,
    private readonly owner: MemoryOwner,
  ) {}

  /**
   * Grows the share to at least this many bytes. Null on success. Otherwise the full limit, and the share is unchanged.
   */
  growTo(bytes: number): FullBudget | null {
    if (bytes <= this.bytes) return null;
    const full = this.budget.fullFor(this.owner, bytes - this.bytes);
    if (full === null) this.set(bytes);
    return full;
  }

  /** Releases what is above this many bytes. */
  shrinkTo(bytes: number): void {
    if (bytes < this.bytes) this.set(bytes);
  }

  /** Releases the whole share. Repeated calls have no effect. */
  release(): void {
    this.shrinkTo(0);
  }

  private set(bytes: number): void {
    this.budget.add(this.owner, bytes - this.bytes);
    this.bytes = bytes;
  }
}
