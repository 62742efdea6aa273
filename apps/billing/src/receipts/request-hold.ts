import type { AdmissionStore } from '@tollgate/admission';
import { isId, RequestError, UnavailableError, type ReplyOf, type RequestOf } from '@tollgate/contracts';

/** Ids without their last character: as many share it as an id has digits. */
const MAX_NEIGHBOURS = 32;

/**
 * Answers `billing.request.hold`. The store reads all holds of the tenant, so this is for a person's question.
 * RequestError invalid_parameter.
 */
export async function holdOfRequest(
  admission: AdmissionStore,
  { tenantId, requestId }: RequestOf<'billing.request.hold'>,
): Promise<ReplyOf<'billing.request.hold'>> {
  if (!isId('ten', tenantId) || !isId('req', requestId))
    throw new RequestError('invalid_parameter', 'tenantId and requestId must be ids.');
  try {
    const holds = await admission.holds({ tenantId, after: requestId.slice(0, -1), limit: MAX_NEIGHBOURS });
    const hold = holds.find(({ id }) => id === requestId);
    return { hold: hold ? { state: hold.state, nanos: String(hold.nanos), quietMs: hold.quietMs } : null };
  } catch (error) {
    if (error instanceof UnavailableError) return { hold: null };
    throw error;
  }
}
