import { newId, RequestError, type ReplyOf } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';
import { RequestLives } from './request-lives';

const [id, tenantId, keyId] = [newId('req'), newId('ten'), newId('key')];
const books: ReplyOf<'billing.request.entry'> = {
  charge: { id, tenantId, keyId, costNanos: '5', endedAt: '2025-01-02T03:04:05.000Z', period: '2025-01' },
  carriedOn: false,
  entry: null,
  invoice: { period: '2025-01', accountingNumber: 7, status: 'paid' },
};

/** Services that no longer have the usage event of the request, and have no hold. */
const lives = new RequestLives({
  request: async (subject: string, { requestId }: { requestId?: string }) => {
    if (subject === 'metering.requests.explain') return { served: [], refused: [] };
    if (subject === 'auth.keys.names') return { data: [] };
    if (subject === 'billing.request.hold') return { hold: null };
    if (requestId === id) return books;
    throw new RequestError('not_found', 'This request has no charge.');
  },
} as unknown as ServiceClient);

describe('a request that was charged, although its client got an error', () => {
  const refused = { id, tenantId, keyId, at: '2026-11-24T10:00:00.000Z', code: 'overloaded_error' };
  const of = (served: object[]) =>
    new RequestLives({
      request: (subject: string) =>
        Promise.resolve(
          subject === 'metering.requests.explain'
            ? { served, refused: [refused] }
            : subject === 'auth.keys.names'
              ? { data: [] }
              : books,
        ),
    } as unknown as ServiceClient).of(id, undefined);

  it('is one served request, with that error', async () => {
    const served = { id, tenantId, keyId, callerRequestId: null };
    expect(await of([served])).toMatchObject([{ id, state: 'served', served, refused, charge: books.charge }]);
    expect(await of([])).toMatchObject([{ id, state: 'refused', served: null, refused, charge: null }]);
  });
});

describe('a request whose usage event is recorded while the others are asked', () => {
  const served = { id, tenantId, keyId, callerRequestId: null };
  /** Metering has the event once `subject` was asked. */
  const recordedAt = (subject: string) => {
    let isRecorded = false;
    const request = (asked: string) => {
      if (asked === 'metering.requests.explain')
        return Promise.resolve({ served: isRecorded ? [served] : [], refused: [] });
      isRecorded ||= asked === subject;
      if (asked === 'auth.keys.names') return Promise.resolve({ data: [] });
      if (asked === 'billing.request.hold') return Promise.resolve({ hold: null });
      if (isRecorded) return Promise.resolve(books);
      return Promise.reject(new RequestError('not_found', 'This request has no charge.'));
    };
    return new RequestLives({ request } as unknown as ServiceClient).of(id, tenantId);
  };

  it.each(['billing.request.entry', 'billing.request.hold'])('at %s, has both', async (subject) => {
    expect(await recordedAt(subject)).toMatchObject([{ id, state: 'served', served, charge: books.charge }]);
  });
});

describe('a request whose usage event is no longer kept', () => {
  it('is explained by its charge, entry and invoice, also by the id of its answer', async () => {
    const charged = { id, tenantId, state: 'served', served: null, refused: null, hold: null, ...books };
    expect(await lives.of(id, undefined)).toMatchObject([charged]);
    expect(await lives.of(id.replace('req_', 'chatcmpl-'), tenantId)).toMatchObject([charged]);
  });

  it('is nothing to another tenant, and an unknown request stays unknown', async () => {
    expect(await lives.of(id, newId('ten'))).toEqual([]);
    expect(await lives.of(newId('req'), undefined)).toEqual([]);
    expect(await lives.of('order-17', undefined)).toEqual([]);
  });
});
