import type { AdmissionClient } from '@tollgate/admission';
import type { Outcome } from '@tollgate/contracts';
import { StreamAllowance } from '../admit/stream-allowance';
import { ChunkTranslator } from '../upstream/chunk-translator';
import type { Backend, CatalogModel } from '../catalog/catalog';
import type { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { StreamRelay } from '../upstream/stream-relay';
import type { StreamEnd } from '../upstream/stream-sides';
import type { StreamWatch } from '../upstream/stream-watch';
import type { Upstream } from '../upstream/upstream';
import { noteOverlong } from './backend-faults';
import { type Client, errorEvent } from './client';
import { InferenceError } from '../inference-errors';
import { type AdmittedRequest, KINDS } from './admitted-request';
import { type Served, WithheldEnd } from './served';
import { failureAnswer, interrupted } from './refusals';

interface Parts {
  readonly admission: AdmissionClient;
  readonly upstream: Upstream;
  readonly streams: StreamWatch;
  readonly counting: TokenizerThrottle;
}

/** Serves a stream chunk by chunk. The result's `end` writes the last chunk and `[DONE]`. */
export async function serveStream(
  { admission, upstream, streams, counting }: Parts,
  admitted: AdmittedRequest,
  client: Client,
): Promise<Served> {
  const { request, model, draft, hold } = admitted;
  const { path, chunkObject } = KINDS[request.kind];
  const allowance = new StreamAllowance(admission, hold, request.choices);
  const identity = { ...admitted.identity, object: chunkObject, includeUsage: request.includeUsage };
  const relay = new StreamRelay(
    new ChunkTranslator(identity, request.choices),
    client,
    allowance,
    hold.deadline,
    (text) => admitted.countText(text),
    request.choices,
    endOfChoice(request.kind),
  );
  if (hold.fallbacks.length > 0) {
    const onServedBy = (fallback: CatalogModel) => {
      admitted.servedBy(fallback);
      allowance.capAt(admitted.maxTokensPerChoice);
    };
    const onFirstOutput = () => allowance.priceAs(admitted.model);
    relay.onServedBy = onServedBy;
    relay.onFirstOutput = onFirstOutput;
  }
  client.endWith(relay);
  admission.track({
    id: draft.id,
    tenantId: draft.tenantId,
    storeEpoch: hold.storeEpoch,
    deadline: hold.deadline,
    prepare: () => admitted.countForRecord(relay.delivered, relay.chunks, counting),
    delivered: () => admitted.record(relay.delivered, relay.chunks),
    onLost: () => relay.holdLost(),
  });
  streams.add(relay, Date.now(), () => client.destroy());
  const call = {
    model,
    path,
    stream: true,
    fallbacks: hold.fallbacks,
    body: (backend: Backend) => admitted.bodyFor(backend),
    affinity: request.affinity,
    headers: admitted.backendHeaders,
    request: admitted,
  };
  const exchange = upstream.exchange(call, relay);
  admitted.asks(exchange);
  const { outcome, failure, usage } = await relay.run(exchange);
  streams.remove(relay);
  if (failure?.kind === 'stopped') admitted.stopped();

  if (outcome === 'capped') noteOverlong({ ...admitted.logged, backend: exchange.backendUrl });
  const isProper = outcome === 'complete' || outcome === 'capped' || outcome === 'credit_ended';
  const error = failure
    ? failureAnswer(failure, admitted, exchange.backendUrl)
    : outcome === 'hold_lost'
      ? interrupted()
      : null;
  // No token reached the client, and the model did not finish: nothing is charged.
  if (!isProper && relay.chunks === 0) return { kind: 'nothing', error };
  const { tokens, estimated, details } = admitted.settleAt(usage, relay.delivered, exchange.backendUrl);
  return {
    kind: 'delivered',
    tokens,
    estimated,
    details,
    outcome: OUTCOMES[outcome],
    allowance,
    isReported: usage !== null,
    firstTokenAtMs: relay.firstTokenAtMs,
    extensions: allowance.extensions,
    end: new WithheldEnd(details, (usageField) => {
      if (isProper) {
        const bytes = relay.finish(usageField, request.includeUsage);
        return { bytes, send: () => client.endStream(bytes) };
      }
      if (error) return { bytes: errorEvent(error), send: () => client.refuse(error) };
      // The client left, so nobody gets it but a repeat, which must not take the answer for a complete one.
      return { bytes: errorEvent(new InferenceError('idempotency_answer_incomplete')), send: () => {} };
    }),
  };
}

/**
 * The outcomes in the books. A stream that passed its hold's deadline is treated as if its gateway had died. It is
 * settled at the output delivered, unless the sweeper has settled its recorded progress.
 */
const OUTCOMES: Record<StreamEnd['outcome'], Outcome> = {
  complete: 'complete',
  capped: 'complete',
  client_closed: 'client_closed',
  upstream_error: 'upstream_error',
  credit_ended: 'credit_ended',
  hold_lost: 'expired',
};

/** The last choice of an output that was cut, at the requested limit or for lack of credit. */
function endOfChoice(kind: string): (index: number) => object {
  return (index) =>
    kind === 'chat' ? { index, delta: {}, finish_reason: 'length' } : { index, text: '', finish_reason: 'length' };
}
