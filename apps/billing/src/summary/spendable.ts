import type { AdmissionStore } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';

/**
 * What admission would let a tenant spend now, in nanos: the balance that it knows, less settled holds that are not in
 * the books yet. Null while the store is away or does not know the tenant. The store reads all holds of the tenant, so
 * this is for an operator's question, not for every request.
 */
export async function spendableNanos(admission: AdmissionStore, tenantId: string): Promise<bigint | null> {
  try {
    const [snapshot] = await admission.snapshot({ tenantId, limit: 1 });
    return snapshot && snapshot.unreadable === undefined ? snapshot.balanceNanos - snapshot.settledNanos : null;
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}
