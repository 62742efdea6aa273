import type { AdmissionStore } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import { LRUCache } from 'lru-cache';

/** The most holds of one tenant that are read. With more, the amounts by key are unknown. */
const MAX_HOLDS = 2_000;
/** Pause between reads of a tenant: `REST_MS`, or 20 times the last read's duration if that is longer. */
const REST_MS = 1_000;
const REST_OF_READS = 20;
/** Tenants whose last read is kept. */
const MAX_TENANTS = 1_000;

type Held = Record<string, string> | null;

interface Read {
  held: Promise<Held>;
  /** Infinity: it is under way. */
  restsUntilMs: number;
}

/**
 * The amounts that the running requests of each key of a tenant hold. For this, the store that admits requests reads
 * all holds of the tenant. So concurrent callers share a read, and reads of a tenant take a small part of the time.
 */
export class HeldByKey {
  private readonly reads = new LRUCache<string, Read>({ max: MAX_TENANTS });

  constructor(
    private readonly admission: Pick<AdmissionStore, 'holds'>,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** In nanos; a key without any is left out. Null: the store does not answer, or the tenant has too many holds. */
  of(tenantId: string): Promise<Held> {
    const last = this.reads.get(tenantId);
    if (last && this.nowMs() < last.restsUntilMs) return last.held;
    const read: Read = { held: Promise.resolve(null), restsUntilMs: Infinity };
    this.reads.set(tenantId, read);
    read.held = this.read(tenantId, read);
    return read.held;
  }

  private async read(tenantId: string, read: Read): Promise<Held> {
    const beganAtMs = this.nowMs();
    try {
      return await heldNow(this.admission, tenantId);
    } finally {
      const endedAtMs = this.nowMs();
      read.restsUntilMs = endedAtMs + Math.max(REST_MS, REST_OF_READS * (endedAtMs - beganAtMs));
    }
  }
}

async function heldNow(admission: Pick<AdmissionStore, 'holds'>, tenantId: string): Promise<Held> {
  try {
    const holds = await admission.holds({ tenantId, limit: MAX_HOLDS + 1, withRunning: true });
    if (holds.length > MAX_HOLDS) return null;
    const held = new Map<string, bigint>();
    for (const { nanos, running } of holds) {
      if (!running) continue;
      const { keyId } = running.draft;
      held.set(keyId, (held.get(keyId) ?? 0n) + nanos);
    }
    return Object.fromEntries([...held].map(([keyId, nanos]) => [keyId, String(nanos)]));
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}
