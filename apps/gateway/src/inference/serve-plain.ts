import type { AdmissionClient } from '@tollgate/admission';
import type { InferenceKind } from '@tollgate/contracts';
import { PlainRelay, type ReadAnswer } from '../upstream/plain-answer';
import type { Upstream } from '../upstream/upstream';
import type { Backend, CatalogModel } from '../catalog/catalog';
import { noteOverlong } from './backend-faults';
import type { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import type { Client } from './client';
import { type AdmittedRequest, KINDS } from './admitted-request';
import { type Served, WithheldEnd } from './served';
import { maxAnswerBytes } from './answer-bytes';
import { fitPlain } from './plain-output';
import {
  encodeVectors,
  haveMessages,
  type PlainResponse,
  readPlainResponse,
  writePlainResponse,
} from './plain-response';
import { failureAnswer, interrupted } from './refusals';

interface Parts {
  readonly admission: AdmissionClient;
  readonly upstream: Upstream;
  readonly counting: TokenizerThrottle;
}

/** Serves a plain answer. It is buffered, so that nothing of it is sent before it is settled. */
export async function servePlain(
  { admission, upstream, counting }: Parts,
  admitted: AdmittedRequest,
  client: Client,
): Promise<Served> {
  const { request, model, draft, hold } = admitted;
  const onFallback = (fallback: CatalogModel) => admitted.servedBy(fallback);
  const read = (body: Buffer) => readAnswer(request.kind, body);
  const relay = new PlainRelay(read, maxAnswerBytes(request, hold.maxTokensPerChoice), onFallback);
  client.endWith(relay);
  admission.track({
    id: draft.id,
    tenantId: draft.tenantId,
    storeEpoch: hold.storeEpoch,
    deadline: hold.deadline,
    delivered: () => null,
    onLost: () => relay.holdLost(),
  });
  const call = {
    model,
    path: KINDS[request.kind].path,
    stream: false,
    fallbacks: hold.fallbacks,
    body: (backend: Backend) => admitted.bodyFor(backend),
    affinity: request.affinity,
    headers: admitted.backendHeaders,
    request: admitted,
  };
  const exchange = upstream.exchange(call, relay);
  admitted.asks(exchange);
  const answer = await relay.run(exchange);
  switch (answer.kind) {
    case 'client_closed':
      return { kind: 'nothing', error: null };
    case 'hold_lost':
      return { kind: 'nothing', error: interrupted() };
    case 'failed':
      if (answer.failure.kind === 'stopped') admitted.stopped();
      return { kind: 'nothing', error: failureAnswer(answer.failure, admitted, exchange.backendUrl) };
    case 'answer':
      return deliver(answer.answer, admitted, exchange.backendUrl, client, counting);
  }
}

function readAnswer(kind: InferenceKind, body: Buffer): ReturnType<ReadAnswer<PlainResponse>> {
  const answer = readPlainResponse(kind, body);
  if (!answer) return { kind: 'unusable', reason: 'the answer cannot be parsed' };
  if (kind === 'chat' && !haveMessages(answer.content)) return { kind: 'unusable', reason: 'a choice has no message' };
  return { kind: 'usable', answer };
}

async function deliver(
  answered: PlainResponse,
  admitted: AdmittedRequest,
  backendUrl: string,
  client: Client,
  counting: TokenizerThrottle,
): Promise<Served> {
  const { request } = admitted;
  const refused = (reason: string): Served => ({
    kind: 'nothing',
    error: failureAnswer({ kind: 'failed', reason }, admitted, backendUrl),
  });
  if (request.encodingFormat === 'base64') encodeVectors(answered);
  const fitted = await fitPlain(admitted, answered, counting);
  if (fitted.kind !== 'fits') noteOverlong({ ...admitted.logged, backend: backendUrl });
  if (fitted.kind === 'refused') return refused(fitted.reason);
  const { response, output } = fitted;
  // The backend's count includes what was cut.
  const usage = fitted.kind === 'cut' ? null : response.usage;
  const { tokens, estimated, details } = admitted.settleAt(usage, output, backendUrl);
  return {
    kind: 'delivered',
    tokens,
    estimated,
    details,
    outcome: 'complete',
    allowance: null,
    isReported: usage !== null,
    firstTokenAtMs: null,
    extensions: 0,
    end: new WithheldEnd(details, (usageField) => {
      const bytes = writePlainResponse(request.kind, response, admitted.identity, usageField);
      return { bytes, send: () => client.answer(200, bytes) };
    }),
  };
}
