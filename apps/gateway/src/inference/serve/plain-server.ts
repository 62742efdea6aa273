import { Injectable } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { BodyMemory } from '../../admit/body-memory';
import type { CatalogModel } from '../../catalog/catalog';
import { type OpenMemory, PlainRelay, type ReadAnswer } from '../../upstream/exchange/plain-answer';
import { Upstream } from '../../upstream/upstream';
import type { AdmittedRequest } from '../admitted-request';
import { maxAnswerBytes } from '../plain/answer-bytes';
import { AnswerReader } from '../plain/answer-reader';
import { askBackend } from './ask-backend';
import { noteOverlong } from '../backend-faults';
import type { Client } from '../client/client';
import type { RequestedAnswer } from '../plain/plain-output';
import type { PlainReading } from '../plain/plain-reading';
import { endPlainResponse } from '../plain/plain-response';
import { failureAnswer, interrupted } from '../refusals';
import { type Served, WithheldEnd } from './served';

/** Serves plain answers. They are buffered, so that nothing of them is sent before they are settled. */
@Injectable()
export class PlainServer {
  constructor(
    private readonly admission: AdmissionClient,
    private readonly upstream: Upstream,
    private readonly answers: AnswerReader,
    private readonly memory: BodyMemory,
  ) {}

  /** The result's `end` writes the whole answer. */
  async serve(admitted: AdmittedRequest, client: Client): Promise<Served> {
    const { request, draft, hold } = admitted;
    const onFallback = (fallback: CatalogModel) => admitted.servedBy(fallback);
    const { tenantId } = draft;
    const read: ReadAnswer<PlainReading> = (body, until) =>
      this.answers.read(body, requestedAnswer(admitted), { tenantId, logged: admitted.logged }, until);
    const openMemory: OpenMemory = (resume) => this.memory.arriving.open(draft, resume);
    const relay = new PlainRelay(read, openMemory, maxAnswerBytes(request, hold.maxTokensPerChoice), onFallback);
    admitted.buffered = relay;
    client.endWith(relay);
    this.admission.track({
      id: draft.id,
      tenantId,
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

  private deliver(reading: PlainReading, admitted: AdmittedRequest, backendUrl: string, client: Client): Served {
    if (reading.kind !== 'fits') noteOverlong({ ...admitted.logged, backend: backendUrl });
    if (reading.kind === 'refused') {
      const failure = { kind: 'failed', reason: reading.reason } as const;
      return { kind: 'nothing', error: failureAnswer(failure, admitted, backendUrl) };
    }
    const { begun, usage, output, wentToLimit } = reading;
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
        const bytes = endPlainResponse(begun, usageField);
        return { bytes, send: () => client.answer(200, bytes) };
      }),
    };
  }
}

/** By the model that serves the request now. */
function requestedAnswer({ request, model, maxTokensPerChoice, identity }: AdmittedRequest): RequestedAnswer {
  const { kind, choices, prompts, structuredOutput, encodingFormat } = request;
  const { tokenizer, usageBand } = model;
  return {
    kind,
    choices,
    prompts,
    structuredOutput,
    encodingFormat,
    maxTokensPerChoice,
    identity,
    tokenizer,
    usageBand,
  };
}
