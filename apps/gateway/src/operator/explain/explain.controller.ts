import { Controller, Get, Inject, Param, Query, UseGuards } from '@nestjs/common';
import type { AdmissionStore, LookResult } from '@tollgate/admission';
import {
  REQUEST_ID_PATTERN,
  RequestError,
  UnavailableError,
  type ExplainedKey,
  type ExplainedRequest,
} from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource, stampPrice, type ModelConfig } from '@tollgate/runtime';
import { ApiError } from '../../http/api-error';
import { ORIGINAL_ID_HEADER } from '../../http/request-id';
import { queryCheck } from '../../http/validate';
import { allowedBoth, resolveRights, type Rights } from '../../authenticate/authenticate';
import { ExplainQuery } from './explain-schemas';
import { budgetInForce, obstaclesOf } from './key-obstacles';
import { OPERATOR_PREFIX } from '../prefix';
import { RequestLives } from './request-lives';
import { SecretGuard } from '../port/secret-guard';
import { requireId } from '../require-id';

/** The look of the admission store. */
export const LOOKS = Symbol('LOOKS');
export type Looks = Pick<AdmissionStore, 'look'>;

const checkQuery = queryCheck(ExplainQuery);
const UNKNOWN =
  'No usage and no refused request is recorded for this id. Ended requests arrive within about 10 s. A running ' +
  'request is found only by the id of its answer (req_…, chatcmpl-…), not by an x-request-id. The repeat ' +
  `of an Idempotency-Key has no record of its own: its answer names the first request in ${ORIGINAL_ID_HEADER}.`;
const ASK_WITH_TENANT = 'To find a running request, give its tenantId as well.';
const NAME = new RegExp(REQUEST_ID_PATTERN);

/** Answers complaints of customers: what happened to a request, and what a key may do now. */
@Controller(`${OPERATOR_PREFIX}/explain`)
@UseGuards(SecretGuard)
export class ExplainController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
    @Inject(LOOKS) private readonly admission: Looks,
    private readonly lives: RequestLives,
  ) {}

  @Get('requests/:name')
  async request(
    @Param('name') name: string,
    @Query() query: unknown,
  ): Promise<{ data: { requests: ExplainedRequest[]; currency: string } }> {
    const { tenantId } = checkQuery(query);
    const requests = NAME.test(name) ? await this.lives.of(name, tenantId) : [];
    if (requests.length === 0)
      throw new ApiError('not_found', tenantId === undefined ? `${UNKNOWN} ${ASK_WITH_TENANT}` : UNKNOWN);
    return { data: { requests, currency: this.config.current.currency } };
  }

  @Get('keys/:keyId')
  async key(@Param('keyId') id: string, @Query() query: unknown): Promise<{ data: ExplainedKey }> {
    const { tenantId } = checkQuery(query);
    requireId('key', id);
    const key = await this.services.request('auth.keys.find', { id });
    if (tenantId !== undefined && key.tenantId !== tenantId) throw new RequestError('not_found', 'No such key.');
    const ofTenant = { tenantId: key.tenantId };
    const [tenant, credit, ofKey, ofAll, { refused }] = await Promise.all([
      this.services.request('auth.tenants.get', ofTenant),
      this.services.request('billing.credit.state', ofTenant),
      this.services.request('billing.budget.get', { ...ofTenant, keyId: id }),
      this.services.request('billing.budget.get', { ...ofTenant, keyId: null }),
      this.services.request('metering.refusals.newest', { keyId: id }),
    ]);
    const { current } = this.config;
    const rights = resolveRights(current, tenant.plan, key.profile);
    const allowed = key.models === null ? rights?.models : allowedBoth(key.models, rights?.models ?? null);
    const models = current.models.filter((model) => rights !== null && (allowed?.has(model.id) ?? true));
    const isPaid = !models.every(isFree);
    const look = rights === null ? null : await this.look(key.tenantId, id, rights, isPaid);
    const budgets = {
      key: budgetInForce(ofKey, rights?.keyBudgetNanos ?? null),
      tenant: budgetInForce(ofAll, rights?.tenantBudgetNanos ?? null),
    };
    const ids = models.map((model) => model.id);
    const obstacles = obstaclesOf({ key, tenant, rights, models: ids, isPaid, budgets, credit, look }, Date.now());
    return {
      data: {
        key,
        tenant,
        admitted: rights !== null && look === null ? null : obstacles.length === 0,
        obstacles,
        models: ids,
        limits: rights && {
          key: { ...rights.keyLimits, ...(look && remaining(look.limits)) },
          tenant: { ...rights.tenantLimits, ...(look && remaining(look.limits.tenant)) },
        },
        budgets,
        credit,
        refused,
        currency: current.currency,
      },
    };
  }

  /** Null while the store does not answer. */
  private async look(tenantId: string, keyId: string, rights: Rights, isPaid: boolean): Promise<LookResult | null> {
    const { tenantLimits, keyLimits, tenantBudgetNanos, keyBudgetNanos } = rights;
    const of = { tenantId, keyId, tenantLimits, keyLimits, tenantBudgetNanos, keyBudgetNanos };
    try {
      const [paid] = await this.admission.look([{ ...of, isPaid }]);
      if (paid instanceof UnavailableError) return null;
      if (paid === undefined || paid instanceof Error) throw paid ?? new Error('a look had no answer');
      return paid;
    } catch (error) {
      if (error instanceof UnavailableError) return null;
      throw error;
    }
  }
}

function isFree({ price, kind }: ModelConfig): boolean {
  const { inputFemtos, cachedInputFemtos, outputFemtos, requestNanos } = stampPrice(price, kind);
  return [inputFemtos, cachedInputFemtos, outputFemtos, requestNanos].every((amount) => amount === '0');
}

function remaining({ requestsRemaining, tokensRemaining }: LookResult['limits']['tenant']) {
  return { requestsRemaining, tokensRemaining };
}
