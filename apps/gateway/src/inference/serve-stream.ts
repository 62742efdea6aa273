import { StreamAllowance } from '../admit/stream-allowance';
import { costNanos } from '@tollgate/contracts';
import { ChunkTranslator } from '../upstream/chunk-translator';
import { StreamRelay } from '../upstream/stream-relay';
import type { Backend } from '../catalog/catalog';
import type { Client } from './client';
import { type Job, KINDS, type Served } from './job';
import type { Stages } from './stages';
import { failureAnswer, interrupted } from './refusals';
import { upstreamBody } from './body/outgoing';

/** A stream, passed on as it comes; its last chunk and `[DONE]` wait in `end`. */
export async function serveStream(
  { admission, upstream, streams, counting }: Stages,
  job: Job,
  client: Client,
): Promise<Served> {
  const { ask, model, draft, hold } = job;
  const { path, chunkObject } = KINDS[ask.kind];
  const allowance = new StreamAllowance(admission, hold, model, ask.choices, () => job.boundOfPrompt());
  const translator = new ChunkTranslator({ ...job.identity, object: chunkObject, includeUsage: ask.includeUsage });
  const relay = new StreamRelay(
    translator,
    client,
    allowance,
    (text) => job.countText(text),
    ask.choices,
    endOfChoice(ask.kind),
  );
  client.onLeave = () => relay.clientClosed();
  client.onCutOff = () => relay.cutOff();
  admission.track({
    id: draft.id,
    tenantId: draft.tenantId,
    life: hold.life,
    prepare: () => job.countForRecord(relay.delivered, relay.chunks, counting),
    delivered: () => job.record(relay.delivered, relay.chunks),
    onLost: () => relay.holdLost(),
  });
  streams.add(relay, Date.now(), () => client.destroy());
  const call = {
    model,
    path,
    stream: true,
    body: (backend: Backend) => upstreamBody(ask, backend, hold.maxTokensPerChoice),
  };
  const exchange = upstream.exchange(call, relay);
  job.begun = exchange.begun;
  const { outcome, failure, usage } = await relay.run(exchange);
  streams.remove(relay);

  if (outcome === 'hold_lost') return { kind: 'nothing', error: interrupted() };
  const error = failure && failureAnswer(failure, job, exchange.backendUrl);
  // Not a token reached the client, and the model did not finish: nobody pays.
  if (outcome !== 'complete' && outcome !== 'credit_ended' && relay.chunks === 0) return { kind: 'nothing', error };
  const tokens = usage ?? job.count(relay.delivered.tokens());
  if (usage) await allowance.raiseTo(costNanos(tokens, draft.price));
  return {
    kind: 'delivered',
    tokens,
    estimated: usage === null,
    outcome,
    firstTokenAtMs: relay.firstTokenAtMs,
    end: (usageField) => {
      if (outcome === 'complete' || outcome === 'credit_ended')
        client.endStream(relay.finish(usageField, ask.includeUsage));
      else if (error) client.refuse(error);
    },
  };
}

/** A choice that is cut off because no credit is left for more. */
function endOfChoice(kind: string): (index: number) => object {
  return (index) =>
    kind === 'chat' ? { index, delta: {}, finish_reason: 'length' } : { index, text: '', finish_reason: 'length' };
}
