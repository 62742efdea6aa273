import type { AdmissionStore, Snapshot } from '@tollgate/admission';
import { UnavailableError, type CreditState } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';

/**
 * What admission would let a tenant spend now, in nanos: the balance that it knows, minus settled holds that are not in
 * the books yet. Null while the store is unavailable or does not know the tenant. The store reads all holds of the
 * tenant, so this is for an operator's question, not for every request.
 */
export async function spendableNanos(admission: AdmissionStore, tenantId: string): Promise<bigint | null> {
  const known = await readableSnapshot(admission, tenantId);
  return known && known.balanceNanos - known.settledNanos;
}

/** Answers `billing.credit.state`. The books are read first, then the admission store. */
export async function creditState(
  dataSource: DataSource,
  admission: AdmissionStore,
  tenantId: string,
): Promise<CreditState> {
  const [books] = await query<{ balance_cents: string; unposted_nanos: string }>(
    dataSource,
    `SELECT balance_cents, carried_nanos + gathered_nanos AS unposted_nanos FROM tenant_books WHERE tenant_id = $1`,
    [tenantId],
  );
  const known = await readableSnapshot(admission, tenantId);
  const spendable = known && known.balanceNanos - known.settledNanos;
  return {
    balanceCents: Number(books?.balance_cents ?? 0),
    unpostedNanos: books?.unposted_nanos ?? '0',
    admission: known && {
      settledNanos: String(known.settledNanos),
      heldNanos: String(known.pendingNanos),
      runningRequests: known.pendingHolds,
      spendableNanos: String(spendable),
      availableNanos: String(spendable! - known.pendingNanos),
    },
  };
}

async function readableSnapshot(admission: AdmissionStore, tenantId: string): Promise<Snapshot | null> {
  try {
    const [snapshot] = await admission.snapshot({ tenantId, limit: 1 });
    return snapshot && snapshot.tenantId === tenantId && snapshot.unreadable === undefined ? snapshot : null;
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}
