import type { AdmissionStore } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';

/** Holds of one tenant. Of more, the amounts by key are not known. */
const MAX_HOLDS = 2_000;

/**
 * What the running requests of each key of a tenant hold, in nanos; a key without any is left out. The store reads all
 * holds of the tenant, so this is for a person's question. Null: it does not answer, or the tenant has too many.
 */
export async function heldByKey(admission: AdmissionStore, tenantId: string): Promise<Record<string, string> | null> {
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
