import { Controller, Get, Param, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { ifFound, type ListedRequest, type Outcome, type ServedRequest } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { AllowInTenant } from '../../access/allow';
import { queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { RequestBooks, RequestList } from '../answers';
import { CallerRequestIdField, inUtc, KeyIdField, ModelField, pageSize } from '../fields';
import { keyNames } from '../key-names';
import { requireId } from '../../http/require-id';

/** A search among millions of requests answers in short or empty pages. One call asks for this many of them. */
const MAX_PAGES_A_CALL = 5;
/** After this time a short page is answered, and the person decides whether to search on. */
const SEARCH_MS = 150;

const readList = queryOf(
  Type.Object({
    limit: pageSize,
    /** The search of metering checks it. */
    after: Type.Optional(Type.String({ maxLength: 100 })),
    from: Type.Optional(Type.String({ format: 'date-time' })),
    to: Type.Optional(Type.String({ format: 'date-time' })),
    model: Type.Optional(ModelField),
    keyId: Type.Optional(KeyIdField),
    callerRequestId: Type.Optional(CallerRequestIdField),
    outcome: Type.Optional(Type.Unsafe<Outcome>({ type: 'string', maxLength: 32 })),
  }),
);

/** The requests of a tenant that were served. Their prompts and answers are stored nowhere. */
@Controller('console/api/tenants/:tenantId/requests')
export class RequestsController {
  constructor(private readonly services: ServiceClient) {}

  /** Newest first. A page may be short, even empty, while `nextCursor` is not null. */
  @Get()
  @AllowInTenant('requests.read')
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<RequestList> {
    const { limit, ...search } = inUtc(readList(query));
    const data: ListedRequest[] = [];
    let { after } = search;
    const untilMs = performance.now() + SEARCH_MS;
    for (let page = 0; page < MAX_PAGES_A_CALL; page += 1) {
      const found = await this.services.request('metering.requests.list', {
        ...search,
        tenantId,
        limit: limit - data.length,
        ...(after !== undefined && { after }),
      });
      data.push(...found.data);
      after = found.nextCursor ?? undefined;
      if (after === undefined) break;
      if (data.length === limit || performance.now() >= untilMs) break;
    }
    const names = await keyNames(
      this.services,
      data.map(({ keyId }) => keyId),
    );
    return { data: data.map((row) => ({ ...row, keyName: names[row.keyId] ?? null })), nextCursor: after ?? null };
  }

  /** A request from its price to its invoice. `books` is null until its charge has arrived. */
  @Get(':requestId')
  @AllowInTenant('requests.read')
  async request(@Param('tenantId') tenantId: string, @Param('requestId') requestId: string): Promise<RequestBooks> {
    requireId('req', requestId);
    const { served } = await this.services.request('metering.requests.explain', { name: requestId, tenantId });
    const found = served.find(({ id }) => id === requestId);
    if (!found) throw new ConsoleError('not_found');
    const event = shown(found);
    const { data: prices } = await this.services.request('metering.prices.list', {});
    const books = await ifFound(this.services.request('billing.request.entry', { requestId }));
    const price = prices.find(({ model, version }) => model === event.model && version === event.priceVersion);
    const { [event.keyId]: keyName = null } = await keyNames(this.services, [event.keyId]);
    return { event, keyName, life: lifeOf(found), books, price: price ?? null };
  }
}

/** Without its backend and life: where a model runs, and what failed there, is the operator's own business. */
function shown(request: ServedRequest): RequestBooks['event'] {
  const event: Partial<ServedRequest> = { ...request };
  delete event.backend;
  delete event.life;
  return event as RequestBooks['event'];
}

function lifeOf({ life }: ServedRequest): RequestBooks['life'] {
  if (life === null) return null;
  const { heldNanos, endNanos = heldNanos, extensions = 0, firstMs = null } = life;
  return { heldNanos, endNanos, extensions, firstMs };
}
