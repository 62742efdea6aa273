import type { AdmissionStore } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';

/**
 * What admission would let a tenant spend at this moment: the balance that it knows, less what is settled and not in
 * the books yet; nanos. Null while the store is away or has not heard of the tenant. The store reads the tenant's holds
 * for it, which are as many as its requests that run or are on their way into the books: for an operator's question,
 * not for every request.
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
