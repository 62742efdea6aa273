import type { MemoryBudget, MemoryOwner } from './memory-budget';

/**
 * Limits the memory of large plain answers, from their arrival until their clients get them, for each tenant and for
 * all tenants. When a limit is exceeded, backends have to wait: the oldest answer of a tenant goes on beyond the limit
 * of the tenant, and the oldest one of all goes on beyond the limit of all. So one answer always goes on, as the oldest
 * one of all is the oldest of its tenant. An answer stays the oldest until its share is released, also while it waits
 * to be read: otherwise each answer that has arrived would let in the next one.
 */
export class ArrivingAnswers {
  /** In the order in which they became large. */
  private readonly shares = new Set<AnswerShare>();
  private readonly sharesOfTenants = new Map<string, Set<AnswerShare>>();
  private willWake = false;

  constructor(readonly memory: MemoryBudget) {}

  /**
   * The share of an answer that has become large.
   * @param resume called after `growTo` returned false, once the answer may go on. Never called within a caller's turn
   */
  open(owner: MemoryOwner, resume: () => void): AnswerShare {
    const share = new AnswerShare(this, owner, resume);
    this.shares.add(share);
    const ofTenant = this.sharesOfTenants.get(owner.tenantId);
    if (ofTenant) ofTenant.add(share);
    else this.sharesOfTenants.set(owner.tenantId, new Set([share]));
    return share;
  }

  mayGoOn(share: AnswerShare): boolean {
    const { memory, shares, sharesOfTenants } = this;
    if (memory.isFull && !isFirst(share, shares)) return false;
    const full = memory.fullFor(share.owner, 0);
    return full === null || full === 'all' || isFirst(share, sharesOfTenants.get(share.owner.tenantId)!);
  }

  remove(share: AnswerShare): void {
    const { tenantId } = share.owner;
    const ofTenant = this.sharesOfTenants.get(tenantId)!;
    this.shares.delete(share);
    ofTenant.delete(share);
    if (ofTenant.size === 0) this.sharesOfTenants.delete(tenantId);
    if (this.willWake) return;
    this.willWake = true;
    // Not in the callback of a backend's parser: undici runs one parser per process at a time.
    queueMicrotask(() => this.wake());
  }

  /** In order. An answer that goes on may take up the memory at once. */
  private wake(): void {
    this.willWake = false;
    for (const share of this.shares) if (share.isWaiting && this.mayGoOn(share)) share.goOn();
  }
}

/** The memory of one large answer. */
export class AnswerShare {
  private bytes = 0;
  private isReleased = false;
  /** Its backend has to wait. */
  isWaiting = false;

  constructor(
    private readonly answers: ArrivingAnswers,
    readonly owner: MemoryOwner,
    private readonly resume: () => void,
  ) {}

  /** The bytes that are in memory now. False: no more may come until `resume`. */
  growTo(bytes: number): boolean {
    this.answers.memory.add(this.owner, bytes - this.bytes);
    this.bytes = bytes;
    this.isWaiting = !this.answers.mayGoOn(this);
    return !this.isWaiting;
  }

  goOn(): void {
    this.isWaiting = false;
    this.resume();
  }

  /** All of the answer has arrived. It keeps its memory. */
  arrived(): void {
    this.isWaiting = false;
  }

  /** Nothing of the answer is in memory any more. Repeats are harmless. */
  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.isWaiting = false;
    this.answers.memory.add(this.owner, -this.bytes);
    this.answers.remove(this);
  }
}

function isFirst(share: AnswerShare, shares: ReadonlySet<AnswerShare>): boolean {
  return shares.values().next().value === share;
}
