import { Injectable } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import type { Outcome } from '@tollgate/contracts';
import { StreamAllowance } from '../../admit/stream-allowance';
import type { CatalogModel } from '../../catalog/catalog';
import { TokenizerThrottle } from '../../prompt/tokenizer-throttle';
import { ChunkTranslator } from '../../upstream/wire/chunk-translator';
import { StreamRelay } from '../../upstream/stream/stream-relay';
import { PROPER_ENDS, type StreamEnd } from '../../upstream/stream/stream-sides';
import { StreamWatch } from '../../upstream/stream/stream-watch';
import { Upstream } from '../../upstream/upstream';
import { InferenceError } from '../../inference-errors';
import type { AdmittedRequest } from '../admitted-request';
import { KINDS } from '../wire-names';
import { askBackend } from './ask-backend';
import { noteOverlong } from '../backend-faults';
import { type Client, errorEvent } from '../client/client';
import { failureAnswer, interrupted } from '../refusals';
import { type Served, WithheldEnd } from './served';

/** Serves streams, chunk by chunk. */
@Injectable()
export class StreamServer {
  constructor(
    private readonly admission: AdmissionClient,
    private readonly upstream: Upstream,
    private readonly streams: StreamWatch,
    private readonly counting: TokenizerThrottle,
  ) {}

  /** The result's `end` writes the last chunk and `[DONE]`. */
  async serve(admitted: AdmittedRequest, client: Client): Promise<Served> {
    const { hold, request } = admitted;
    const allowance = new StreamAllowance(this.admission, hold, request.choices);
    const relay = relayOf(admitted, client, allowance);
    client.endWith(relay);
    this.keepAlive(admitted, relay);
    this.streams.add(relay, Date.now(), client);
    const exchange = askBackend(this.upstream, admitted, relay);
    const end = await relay.run(exchange);
    this.streams.remove(relay);
    if (end.failure?.kind === 'stopped') admitted.stopped();
    if (end.outcome === 'capped') noteOverlong({ ...admitted.logged, backend: exchange.backendUrl });
    return served(admitted, client, { allowance, relay, end, backendUrl: exchange.backendUrl });
  }

  /** The heartbeat of the hold, with what was delivered. */
  private keepAlive(admitted: AdmittedRequest, relay: StreamRelay): void {
    const { draft, hold } = admitted;
    this.admission.track({
      id: draft.id,
      tenantId: draft.tenantId,
      storeEpoch: hold.storeEpoch,
      deadline: hold.deadline,
      prepare: () => admitted.countForRecord(relay.delivered, relay.chunks, this.counting),
      delivered: () => admitted.record(relay.delivered, relay.chunks),
      onLost: () => relay.holdLost(),
    });
  }
}

function relayOf(admitted: AdmittedRequest, client: Client, allowance: StreamAllowance): StreamRelay {
  const { hold, request } = admitted;
  const { choices, includeUsage, kind } = request;
  const identity = { ...admitted.identity, object: KINDS[kind].chunkObject, includeUsage };
  const relay = new StreamRelay(new ChunkTranslator(identity, choices), client, allowance, hold.deadline, {
    choices,
    countText: (text) => admitted.countText(text),
    endOfChoice: endOfChoice(kind),
  });
  if (hold.fallbacks.length > 0) {
    const onServedBy = (fallback: CatalogModel) => {
      admitted.servedBy(fallback);
      allowance.capAt(admitted.maxTokensPerChoice);
    };
    const onFirstOutput = () => allowance.priceAs(admitted.model);
    relay.onServedBy = onServedBy;
    relay.onFirstOutput = onFirstOutput;
  }
  return relay;
}

interface EndedStream {
  allowance: StreamAllowance;
  relay: StreamRelay;
  end: StreamEnd;
  backendUrl: string;
}

function served(
  admitted: AdmittedRequest,
  client: Client,
  { allowance, relay, end: { outcome, failure, usage }, backendUrl }: EndedStream,
): Served {
  const isProper = PROPER_ENDS.has(outcome);
  const error = failure ? failureAnswer(failure, admitted, backendUrl) : outcome === 'hold_lost' ? interrupted() : null;
  // No token reached the client, and the model did not finish: nothing is charged.
  if (!isProper && relay.chunks === 0) return { kind: 'nothing', error };
  const { tokens, estimated, details } = admitted.settleAt(
    usage,
    { output: relay.delivered, wentToLimit: relay.wentToLimit },
    backendUrl,
  );
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
        const bytes = relay.finish(usageField, admitted.request.includeUsage);
        return { bytes, send: () => client.endStream(bytes) };
      }
      if (error) return { bytes: errorEvent(error), send: () => client.refuse(error) };
      // The client left, so only a repeat gets this end. It must not take the answer for a complete one.
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
