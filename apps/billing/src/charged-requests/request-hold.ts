import type { AdmissionStore, RunningHold } from '@tollgate/admission';
import {
  isId,
  RequestError,
  UnavailableError,
  type ReplyOf,
  type RunningRequest,
  type RequestOf,
} from '@tollgate/contracts';

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
    const holds = await admission.holds({
      tenantId,
      after: requestId.slice(0, -1),
      limit: MAX_NEIGHBOURS,
      withRunning: true,
    });
    const hold = holds.find(({ id }) => id === requestId);
    if (!hold) return { hold: null };
    const { state, nanos, quietMs, running } = hold;
    return { hold: { state, nanos: String(nanos), quietMs, ...(running && { running: toRunning(running) }) } };
  } catch (error) {
    if (error instanceof UnavailableError) return { hold: null };
    throw error;
  }
}

function toRunning({ draft, delivered }: RunningHold): RunningRequest {
  const { keyId, model, kind, stream, startedAt, callerRequestId } = draft;
  return {
    ...{ keyId, model, kind, stream, startedAt },
    ...(callerRequestId !== undefined && { callerRequestId }),
    delivered: delivered && { ...delivered, costNanos: String(delivered.costNanos) },
  };
}
