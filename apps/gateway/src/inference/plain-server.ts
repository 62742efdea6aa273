import { Injectable } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import type { InferenceKind } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { PlainRelay, type ReadAnswer } from '../upstream/plain-answer';
import { Upstream } from '../upstream/upstream';
import type { AdmittedRequest } from './admitted-request';
import { maxAnswerBytes } from './answer-bytes';
import { askBackend } from './ask-backend';
import { noteOverlong } from './backend-faults';
import type { Client } from './client';
import { fitPlain } from './plain-output';
import {
  encodeVectors,
  haveMessages,
  type PlainResponse,
  readPlainResponse,
  writePlainResponse,
} from './plain-response';
import { failureAnswer, interrupted } from './refusals';
import { type Served, WithheldEnd } from './served';

/** Serves plain answers. They are buffered, so that nothing of them is sent before they are settled. */
@Injectable()
export class PlainServer {
  constructor(
    private readonly admission: AdmissionClient,
    private readonly upstream: Upstream,
    private readonly counting: TokenizerThrottle,
  ) {}

  /** The result's `end` writes the whole answer. */
  async serve(admitted: AdmittedRequest, client: Client): Promise<Served> {
    const { request, draft, hold } = admitted;
    const onFallback = (fallback: CatalogModel) => admitted.servedBy(fallback);
    const read = (body: Buffer) => readAnswer(request.kind, body);
    const relay = new PlainRelay(read, maxAnswerBytes(request, hold.maxTokensPerChoice), onFallback);
    client.endWith(relay);
    this.admission.track({
      id: draft.id,
      tenantId: draft.tenantId,
      storeEpoch: hold.storeEpoch,
      deadline: hold.deadline,
      delivered: () => null,
      onLost: () => relay.holdLost(),
    });
    const exchange = askBackend(this.upstream, admitted, relay);
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
        return this.deliver(answer.answer, admitted, exchange.backendUrl, client);
    }
  }

  private async deliver(
    answered: PlainResponse,
    admitted: AdmittedRequest,
    backendUrl: string,
    client: Client,
  ): Promise<Served> {
    const { request } = admitted;
    const refused = (reason: string): Served => ({
      kind: 'nothing',
      error: failureAnswer({ kind: 'failed', reason }, admitted, backendUrl),
    });
    if (request.encodingFormat === 'base64') encodeVectors(answered);
    const fitted = await fitPlain(admitted, answered, this.counting);
    if (fitted.kind !== 'fits') noteOverlong({ ...admitted.logged, backend: backendUrl });
    if (fitted.kind === 'refused') return refused(fitted.reason);
    const { response, output } = fitted;
    // The backend's count includes what was cut.
    const usage = fitted.kind === 'cut' ? null : response.usage;
    const atLimit = response.content.filter((choice) => choice['finish_reason'] === 'length');
    const wentToLimit = atLimit.length === request.choices;
    const { tokens, estimated, details } = admitted.settleAt(usage, { output, wentToLimit }, backendUrl);
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
}

function readAnswer(kind: InferenceKind, body: Buffer): ReturnType<ReadAnswer<PlainResponse>> {
  const answer = readPlainResponse(kind, body);
  if (!answer) return { kind: 'unusable', reason: 'the answer cannot be parsed' };
  if (kind === 'chat' && !haveMessages(answer.content)) return { kind: 'unusable', reason: 'a choice has no message' };
  return { kind: 'usable', answer };
}
