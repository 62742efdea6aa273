/** The limit that has no room left: the limit of the key, of its tenant, or of all tenants. */
export type FullBudget = 'key' | 'tenant' | 'all';

/** The owner of the memory. */
export interface MemoryOwner {
  readonly keyId: string;
  readonly tenantId: string;
}

/** Memory that is limited for each key, for each tenant and for all tenants. */
export class MemoryBudget {
  /** A tenant counts here with no more than its limit, so that it cannot use up the memory of the others. */
  private bytes = 0;
  private readonly bytesOfKeys = new Map<string, number>();
  private readonly bytesOfTenants = new Map<string, number>();

  constructor(
    readonly limits: { readonly perKey: number; readonly perTenant: number; readonly all: number },
    private readonly gauge: { inc(bytes: number): void },
  ) {}

  /** All tenants together exceed their limit. */
  get isFull(): boolean {
    return this.bytes > this.limits.all;
  }

  /** The limit that the owner would exceed with this many more bytes. Null: none. */
  fullFor({ keyId, tenantId }: MemoryOwner, bytes: number): FullBudget | null {
    const { perKey, perTenant, all } = this.limits;
    if ((this.bytesOfKeys.get(keyId) ?? 0) + bytes > perKey) return 'key';
    if ((this.bytesOfTenants.get(tenantId) ?? 0) + bytes > perTenant) return 'tenant';
    return this.bytes + bytes > all ? 'all' : null;
  }

  /** Adds bytes, also beyond the limits. A negative number releases them. */
  add({ keyId, tenantId }: MemoryOwner, bytes: number): void {
    const { perTenant } = this.limits;
    addTo(this.bytesOfKeys, keyId, bytes);
    const ofTenant = addTo(this.bytesOfTenants, tenantId, bytes);
    this.bytes += Math.min(ofTenant, perTenant) - Math.min(ofTenant - bytes, perTenant);
    this.gauge.inc(bytes);
  }
}

/** The memory that one request has reserved. */
export class MemoryShare {
  bytes = 0;

  constructor(
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

function addTo(map: Map<string, number>, id: string, bytes: number): number {
  const sum = (map.get(id) ?? 0) + bytes;
  if (sum > 0) map.set(id, sum);
  else map.delete(id);
  return sum;
}
