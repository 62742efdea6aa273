import { REFUSED_PARAM, type RefusedRequest } from '@tollgate/contracts';
import type { Client } from '../client/client';
import type { InferenceError } from '../../inference-errors';

/** The code of a request whose client left before any output. It got no answer. */
export const CLIENT_CLOSED = 'client_closed';

/**
 * The record of a request that has no usage, because it was answered with an error, or its client left before any
 * output (`refusal` null). It has only two names from the body: the requested model and the refused parameter.
 */
export function refusedRequest(
  { id, requestId, model, admitted }: Pick<Client, 'id' | 'requestId' | 'model' | 'admitted'>,
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
    ...(param && REFUSED_PARAM.test(param) && { param }),
    ...(refusal?.by && { by: refusal.by }),
    ...(admitted && { heldNanos: String(admitted.hold.holdNanos) }),
    ...(admitted?.failed && { failed: admitted.failed }),
  };
}
