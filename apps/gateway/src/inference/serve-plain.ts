import { PlainRelay } from '../upstream/plain-answer';
import type { Backend } from '../catalog/catalog';
import type { Client } from './client';
import { type Job, KINDS, type Served } from './job';
import type { Stages } from './stages';
import { deliveredTexts, readPlainResponse, writePlainResponse } from './plain-response';
import { failureAnswer, interrupted } from './refusals';
import { upstreamBody } from './body/outgoing';

/** An answer in one piece: gathered whole, so that nothing of it is out before it is settled. */
export async function servePlain({ admission, upstream }: Stages, job: Job, client: Client): Promise<Served> {
  const { ask, model, draft, hold } = job;
  const relay = new PlainRelay();
  client.onLeave = () => relay.clientClosed();
  client.onCutOff = () => relay.cutOff();
  admission.track({
    id: draft.id,
    tenantId: draft.tenantId,
    life: hold.life,
    delivered: () => null,
    onLost: () => relay.holdLost(),
  });
  const call = {
    model,
    path: KINDS[ask.kind].path,
    stream: false,
    body: (backend: Backend) => upstreamBody(ask, backend, hold.maxTokensPerChoice),
  };
  const exchange = upstream.exchange(call, relay);
  job.begun = exchange.begun;
  const answer = await relay.run(exchange);
  switch (answer.kind) {
    case 'client_closed':
      return { kind: 'nothing', error: null };
    case 'hold_lost':
      return { kind: 'nothing', error: interrupted() };
    case 'failed':
      return { kind: 'nothing', error: failureAnswer(answer.failure, job, exchange.backendUrl) };
  }
  const response = readPlainResponse(ask.kind, answer.body);
  if (!response)
    return {
      kind: 'nothing',
      error: failureAnswer({ kind: 'failed', reason: 'the answer cannot be read' }, job, exchange.backendUrl),
    };
  return {
    kind: 'delivered',
    tokens: response.usage ?? job.count(deliveredTexts(response).reduce((sum, text) => sum + job.countText(text), 0)),
    estimated: response.usage === null,
    outcome: 'complete',
    firstTokenAtMs: null,
    end: (usage) => client.answer(200, writePlainResponse(ask.kind, response, job.identity, usage)),
  };
}
