import { Injectable } from '@nestjs/common';
import {
  ifFound,
  type ExplainedRequest,
  type KeyNames,
  type RefusedRequest,
  type ReplyOf,
  type ServedRequest,
} from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { requestIdOf } from '../request-id';

type Books = ReplyOf<'billing.request.entry'>;

/** Finds what the services know of requests. */
@Injectable()
export class RequestLives {
  constructor(private readonly services: ServiceClient) {}

  /** The requests with this name, newest first: our id, that of an answer, or the `x-request-id` of a caller. */
  async of(name: string, tenantId: string | undefined): Promise<ExplainedRequest[]> {
    const ours = requestIdOf(name);
    const asked = { name: ours ?? name, ...(tenantId !== undefined && { tenantId }) };
    const found = await this.recorded(asked);
    if (found.length > 0 || ours === null) return found;
    const charged = await this.charged(ours, tenantId);
    const running = charged.length > 0 || tenantId === undefined ? [] : await this.running(ours, tenantId);
    if (running.length > 0) return running;
    // The usage event may have been recorded since: a charge comes after it, and a hold is released after both.
    const since = await this.recorded(asked);
    return since.length > 0 ? since : charged;
  }

  /** What metering knows. */
  private async recorded(asked: { name: string; tenantId?: string }): Promise<ExplainedRequest[]> {
    const { served, refused } = await this.services.request('metering.requests.explain', asked);
    const names = await this.namesOf([...served, ...refused].map(({ keyId }) => keyId));
    const errorOf = new Map(refused.map((one) => [one.id, one]));
    const lives = await Promise.all(
      served.map(async (one) => ({
        ...(await this.served(one, names.get(one.keyId) ?? null)),
        refused: errorOf.get(one.id) ?? null,
      })),
    );
    // A request with usage is served, also if its answer was an error.
    const others = refused.filter(({ id }) => !served.some((one) => one.id === id));
    const found = [...lives, ...others.map((one) => refusedLife(one, names.get(one.keyId) ?? null))];
    return found.sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  private async served(served: ServedRequest, key: KeyNames | null): Promise<ExplainedRequest> {
    const { id, tenantId, callerRequestId } = served;
    const books = await this.booksOf(id);
    const hold = books === null ? await this.holdOf(id, tenantId) : null;
    return { ...blank(id, tenantId, key), state: 'served', callerRequestId, served, hold, ...books };
  }

  /** A request of a month whose usage events are no longer kept. Its charge stays. */
  private async charged(id: string, tenantId: string | undefined): Promise<ExplainedRequest[]> {
    const books = await this.booksOf(id);
    if (books === null || (tenantId !== undefined && tenantId !== books.charge.tenantId)) return [];
    const key = (await this.namesOf([books.charge.keyId])).get(books.charge.keyId) ?? null;
    return [{ ...blank(id, books.charge.tenantId, key), state: 'served', ...books }];
  }

  /** A hold belongs to a tenant, so it is found only by both. */
  private async running(id: string, tenantId: string): Promise<ExplainedRequest[]> {
    const hold = await this.holdOf(id, tenantId);
    if (hold === null) return [];
    // An earlier version of billing returns only the hold.
    const { keyId, callerRequestId = null } = hold.running ?? {};
    const key = keyId === undefined ? null : ((await this.namesOf([keyId])).get(keyId) ?? null);
    return [{ ...blank(id, tenantId, key), state: 'running', callerRequestId, hold }];
  }

  private async holdOf(requestId: string, tenantId: string): Promise<ExplainedRequest['hold']> {
    return (await this.services.request('billing.request.hold', { tenantId, requestId })).hold;
  }

  private booksOf(requestId: string): Promise<Books | null> {
    return ifFound(this.services.request('billing.request.entry', { requestId }));
  }

  private async namesOf(keyIds: readonly string[]): Promise<Map<string, KeyNames>> {
    if (keyIds.length === 0) return new Map();
    const { data } = await this.services.request('auth.keys.names', { ids: [...new Set(keyIds)] });
    return new Map(data.map((names) => [names.id, names]));
  }
}

function refusedLife(refused: RefusedRequest, key: KeyNames | null): ExplainedRequest {
  const { id, tenantId, callerRequestId = null } = refused;
  return { ...blank(id, tenantId, key), state: 'refused', callerRequestId, refused };
}

function blank(id: string, tenantId: string, key: KeyNames | null) {
  const nothing = {
    served: null,
    refused: null,
    hold: null,
    charge: null,
    carriedOn: false,
    entry: null,
    invoice: null,
    monthClosed: false,
  };
  return { id, tenantId, callerRequestId: null, key, ...nothing };
}
