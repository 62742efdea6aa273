import { CREDENTIAL_LIKE, type FailedAttempt, REFUSED_PARAM, type RefusedRequest } from '@tollgate/contracts';
import type { InferenceError } from '../../inference-errors';

/** The code of a request whose client left before any output. It got no answer. */
export const CLIENT_CLOSED = 'client_closed';

/** What an explanation tells of a request that failed under its hold. */
export interface HeldAttempts {
  readonly hold: { readonly holdNanos: bigint };
  readonly failed: readonly FailedAttempt[] | null;
}

/** A request without usage, as its client has it. */
interface UnservedRequest {
  /** Our id, unique. */
  readonly id: string;
  /** The caller's own `x-request-id`, or `id`. */
  readonly requestId: string;
  /** Public model id; null: it was not found. */
  readonly model: string | null;
  /** Null: it had no hold. */
  readonly admitted: HeldAttempts | null;
}

/**
 * The record of a request that has no usage, because it was answered with an error, or its client left before any
 * output (`refusal` null). It has only two names from the body: the requested model and the refused parameter. Neither
 * is one that looks like a credential, which a client may have put in the wrong place.
 */
export function refusedRequest(
  { id, requestId, model, admitted }: UnservedRequest,
  { tenantId, keyId }: { readonly tenantId: string; readonly keyId: string },
  refusal: Pick<InferenceError, 'code' | 'by' | 'param' | 'askedModel'> | null,
  nowMs: number,
): RefusedRequest {
  const asked = model ?? refusal?.askedModel;
  const param = refusal?.param;
  return {
    id,
    tenantId,
    keyId,
    ...(requestId !== id && { callerRequestId: requestId }),
    at: new Date(nowMs).toISOString(),
    code: refusal?.code ?? CLIENT_CLOSED,
    ...(asked && { model: asked }),
    ...(param && REFUSED_PARAM.test(param) && !CREDENTIAL_LIKE.test(param) && { param }),
    ...(refusal?.by && { by: refusal.by }),
    ...(admitted && { heldNanos: String(admitted.hold.holdNanos) }),
    ...(admitted?.failed && { failed: admitted.failed }),
  };
}
