import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Claim } from '@tollgate/admission';
import { type InferenceKind, UnavailableError, type UsageDraft } from '@tollgate/contracts';
import { failPoint, logger } from '@tollgate/runtime';
import { Admitter } from '../admit/admit';
import { LimitStates, nearestLimits } from '../admit/limit-states';
import type { Principal } from '../authenticate/authenticate';
import { Catalog, type CatalogModel } from '../catalog/catalog';
import type { KeyedRequest } from '../idempotency/keyed-request';
import { PromptEstimate } from '../prompt/prompt-estimate';
import { type AnswerOf, Settlements } from '../settle/settlement';
import { Authentication } from './authentication';
import type { InferenceRequest } from '../body/inference-request';
import type { Client } from './client/client';
import { InferenceError, unknownModel } from '../inference-errors';
import { type Body, Intake } from './read/intake';
import { AdmittedRequest } from './admitted-request';
import { fitFallbacks, noteUnpaid } from './fallback';
import { ClientLeftError } from './read/read-body';
import { interrupted, ofAdmission, unavailable } from './refusals';
import type { RequestOutcome } from './report/request-metrics';
import { RequestReport } from './report/request-report';
import type { WithheldEnd } from './serve/served';
import { Serving } from './serving';

/**
 * The life of a request, in order: plain calls, without guards or interceptors. The numbers are the steps of
 * docs/ARCHITECTURE.md. Steps 1 and 2 were done before, 13 and later belong to the other services.
 */
@Injectable()
export class Pipeline {
  private readonly log = logger('gateway');
  private readonly limitStates = new LimitStates();

  constructor(
    private readonly authentication: Authentication,
    private readonly catalog: Catalog,
    private readonly intake: Intake,
    private readonly admitter: Admitter,
    private readonly serving: Serving,
    private readonly settlements: Settlements,
  ) {}

  /** Chat, completion or embedding. Never rejects: every error becomes an answer or the end of the stream. */
  async infer(kind: InferenceKind, incoming: IncomingMessage, client: Client): Promise<void> {
    const report = new RequestReport(kind, client);
    let body: Body | undefined;
    let admitted: AdmittedRequest | undefined;
    try {
      // 3. Authenticate, before the body is read: no stranger makes us read 10 MiB.
      const principal = await this.authenticate(incoming, client);
      report.ended('authenticate');
      // 4. Look and read: a request that would be refused anyway is refused before a large body is read. A repeat of an
      // Idempotency-Key gets the answer of its first request, and is neither admitted nor charged. It counts as wasted.
      // A key that has wasted too many is refused before the store is read.
      const keyed = this.serving.keyOf(incoming, client, principal);
      this.intake.refuseAfterWaste(principal);
      const isRepeat = keyed !== null && (await keyed.recall());
      body = await this.intake.take(incoming, client, principal, isRepeat);
      const repeated = keyed && (await this.serving.repeat(keyed, kind, body, client));
      if (repeated !== null) {
        body.repeated();
        return report.replayed(repeated);
      }
      // 5. Validate. The backend's request is built from the result.
      const request = await body.toRequest(kind);
      body.becomes(request);
      // 6. Find the model.
      const model = this.findModel(request, principal);
      client.model = model.id;
      report.found(model.id);
      report.ended('read');
      // Steps 7 and 8. From here on there is a hold, which is settled or void.
      admitted = await this.admit(request, model, principal, client, keyed?.claim);
      client.admitted = admitted;
      report.ended('admit');
      failPoint('admitted');
      // 9. Serve the answer, except its end.
      const served = await this.serving.serve(admitted, client);
      report.ended('upstream');
      if (served.kind === 'nothing') {
        failPoint('nothing-delivered');
        await this.settlements.void(admitted);
        throw served.error ?? new ClientLeftError();
      }
      failPoint('served');
      // 10. Settle durably …, with the answer for repeats.
      const { usageCost } = principal;
      const answer = keyed && keptAnswer(keyed, served.end, model.id, usageCost);
      const settled = await this.settlements.settle(admitted, served, answer);
      if (!settled) throw interrupted();
      client.wasSettled = true;
      report.ended('settle');
      failPoint('settled');
      // 11. Send the last byte only now.
      const { event } = settled;
      served.end.of(event, usageCost).send();
      failPoint('answered');
      // 12. Emit the usage event. If it is lost, the settled hold is its record.
      this.settlements.emit(settled, report.served(event, served.firstTokenAtMs));
      if (this.log.isLevelEnabled('debug')) this.log.debug({ ...event, requestId: client.requestId }, 'served');
    } catch (error) {
      // A client that leaves before any output counts as waste too: a backend may have worked for it, unpaid.
      if (!client.admitted || error instanceof ClientLeftError) body?.wasted(error);
      report.refused(this.refuse(client, error));
    } finally {
      body?.release();
      admitted?.buffered?.release();
    }
  }

  /** `GET /models`. */
  listModels(request: IncomingMessage, client: Client): Promise<void> {
    return this.answerFromCatalog(request, client, ({ models }) => ({
      object: 'list',
      data: this.catalog.list(models),
    }));
  }

  /** `GET /models/{model}`: the row of `GET /models`. */
  retrieveModel(id: string, request: IncomingMessage, client: Client): Promise<void> {
    return this.answerFromCatalog(request, client, ({ models }) => {
      const row = this.catalog.row(id, models);
      if (!row) throw unknownModel(id);
      return row;
    });
  }

  /** A path or a method without a route. The answer to a valid key has its limits too. */
  async refuseRoute(refusal: InferenceError, request: IncomingMessage, client: Client): Promise<void> {
    if (request.headers.authorization !== undefined)
      await this.authenticate(request, client).catch((error: unknown) =>
        this.log.debug({ err: error }, 'no valid key'),
      );
    client.refuse(refusal);
  }

  private async answerFromCatalog(
    request: IncomingMessage,
    client: Client,
    answer: (principal: Principal) => object,
  ): Promise<void> {
    try {
      client.answer(200, JSON.stringify(answer(await this.authenticate(request, client))));
    } catch (error) {
      this.refuse(client, error);
    }
  }

  private async authenticate(request: IncomingMessage, client: Client): Promise<Principal> {
    const principal = await this.authentication.authenticate(request, client);
    client.setLimits(() => nearestLimits(principal, this.limitStates.now(principal, Date.now())));
    return principal;
  }

  private findModel(request: InferenceRequest, principal: Principal): CatalogModel {
    const model = this.catalog.find(request.model, principal.models);
    // The configuration has changed since the body was read.
    if (!model) throw unavailable();
    return model;
  }

  private async admit(
    request: InferenceRequest,
    model: CatalogModel,
    principal: Principal,
    client: Client,
    claim: Claim | undefined,
  ): Promise<AdmittedRequest> {
    const nowMs = Date.now();
    const { choices, maxTokens, maxTokensNamed } = request;
    const tokensPerChoice = choices === 0 ? 0 : Math.min(maxTokens ?? Infinity, model.maxOutputTokens);
    // 7. Bound the prompt.
    const bound = PromptEstimate.toHold(request, model, tokensPerChoice);
    const others = this.catalog.fallbacksOf(model, principal.models);
    const { fallbacks, prompt } = fitFallbacks(others, request, model, bound);
    const draft: UsageDraft = {
      id: client.id,
      tenantId: principal.tenantId,
      keyId: principal.keyId,
      model: model.id,
      kind: request.kind,
      stream: request.stream,
      ...(client.requestId !== client.id && { callerRequestId: client.requestId }),
      price: model.price,
      ...(principal.defaultBudgets && { defaultBudgets: principal.defaultBudgets }),
      startedAt: new Date(nowMs).toISOString(),
    };
    // 8. Admit: check the limits, and hold the request's largest possible cost, of a stream its first slice.
    const admission = await this.admitter.admit(
      {
        ...principal,
        draft,
        model,
        fallbacks,
        prompt,
        output: { choices, tokensPerChoice, isNamed: maxTokensNamed },
        claim,
      },
      nowMs,
    );
    const limits = admission.kind === 'held' ? admission.hold.limits : admission.limits;
    this.limitStates.note(principal, limits, nowMs);
    client.setLimits(() => nearestLimits(principal, limits));
    if (admission.kind === 'refused') throw ofAdmission(admission, principal, Date.now());
    noteUnpaid(model, fallbacks, admission.hold.fallbacks);
    const admitted = new AdmittedRequest(request, model, draft, admission.hold, client.requestId, client.trace);
    if (!client.left) return admitted;
    await this.settlements.void(admitted);
    throw new ClientLeftError();
  }

  private refuse(client: Client, error: unknown): RequestOutcome {
    if (error instanceof ClientLeftError) return 'client_closed';
    const refusal = this.toRefusal(client, error);
    client.refuse(refusal);
    return refusal.code;
  }

  private toRefusal({ logged }: Client, error: unknown): InferenceError {
    if (error instanceof InferenceError) return error;
    if (error instanceof UnavailableError) {
      this.log.warn({ ...logged, reason: error.message }, 'answered 503');
      return unavailable();
    }
    this.log.error({ ...logged, err: error }, 'answered 500');
    return new InferenceError('api_error');
  }
}

/** The answer that is settled with a request that has an Idempotency-Key, for repeats. */
function keptAnswer(keyed: KeyedRequest, end: WithheldEnd, model: string, withCost: boolean): AnswerOf {
  return (event) =>
    keyed.keep({ model, isStream: event.stream, requestId: event.id, end: end.of(event, withCost).bytes });
}
