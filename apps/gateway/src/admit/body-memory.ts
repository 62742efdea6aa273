import { Gauge, metrics } from '@tollgate/runtime';
import { DEFAULT_BODY_MEMORY_MIB, DEFAULT_MAX_BODY_MIB } from '../options';
import { ArrivingAnswers } from './arriving-answers';
import { MemoryBudget, type MemoryOwner, MemoryShare } from './memory-budget';

const MIB = 1024 * 1024;
const LEAST_BODY_BYTES_PER_KEY = 32 * MIB;
/** Bodies of the largest size that a key may have in progress. */
const LARGEST_BODIES_PER_KEY = 3;
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
const recordedBytes = new Gauge({
  name: 'tollgate_recorded_answer_bytes',
  help: 'Bytes reserved for streams in progress that are recorded, because they have an Idempotency-Key',
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
/** Beyond these, streams are no longer recorded. They go on, but cannot be repeated. */
const RECORDED_ANSWER_LIMITS = { perKey: 32 * MIB, perTenant: 64 * MIB, all: 256 * MIB };

/**
 * Limits the memory of request bodies, for each key, for each tenant and for all tenants. The announced length is
 * reserved before any of the body is read. Also limits the answers that arrive or are recorded, and counts those that
 * clients have not read.
 */
export class BodyMemory {
  /** The limit of one body. Not more than fits into the memory. */
  readonly maxBytesPerBody: number;
  /** The long answers that clients have not read yet. */
  readonly answers: MemoryBudget;
  /** The large plain answers that clients do not get yet. */
  readonly arriving: ArrivingAnswers;
  private readonly budget: MemoryBudget;
  private readonly recorded: MemoryBudget;

  constructor({
    maxBytes = DEFAULT_BODY_MEMORY_MIB * MIB,
    maxBytesPerBody = DEFAULT_MAX_BODY_MIB * MIB,
    maxBytesPerKey = Math.max(LEAST_BODY_BYTES_PER_KEY, LARGEST_BODIES_PER_KEY * maxBytesPerBody),
    answers = UNREAD_ANSWER_LIMITS,
    arriving = ARRIVING_ANSWER_LIMITS,
    recorded = RECORDED_ANSWER_LIMITS,
  } = {}) {
    this.answers = new MemoryBudget(answers, sentBytes);
    // The keys of a tenant share its limit.
    this.arriving = new ArrivingAnswers(new MemoryBudget({ perKey: arriving.perTenant, ...arriving }, arrivingBytes));
    this.recorded = new MemoryBudget(recorded, recordedBytes);
    const perKey = Math.min(maxBytesPerKey, maxBytes);
    const perTenant = Math.max(perKey, maxBytes / TENANTS_AT_LEAST);
    this.budget = new MemoryBudget({ perKey, perTenant, all: maxBytes }, held);
    this.maxBytesPerBody = Math.min(maxBytesPerBody, perKey);
  }

  /** The limits of request bodies. */
  get limits(): MemoryBudget['limits'] {
    return this.budget.limits;
  }

  /** The share of one request. It is empty at first. */
  open(owner: MemoryOwner): BodyShare {
    return new BodyShare(this.maxBytesPerBody, this.budget, owner);
  }

  /** The share of one recorded stream. It is empty at first. */
  openRecording(owner: MemoryOwner): MemoryShare {
    return new MemoryShare(this.recorded, owner);
  }
}

/** The memory that the body of one request has reserved. */
export class BodyShare extends MemoryShare {
  /** @param maxBytes the largest body */
  constructor(
    readonly maxBytes: number,
    budget: MemoryBudget,
    owner: MemoryOwner,
  ) {
    super(budget, owner);
  }
}
