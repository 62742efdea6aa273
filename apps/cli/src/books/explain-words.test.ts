import { newId, type RefusedRequest, type RequestLife, type ServedRequest } from '@tollgate/contracts';
import { invoiceOf } from './books-words';
import { endOf } from './explain-words';

const life: RequestLife = { key: [1, 2, 3], tenant: [4, 5, 6], heldNanos: '7' };
const ended = (outcome: ServedRequest['outcome'], of: RequestLife | null = life) =>
  ({ outcome, life: of }) as ServedRequest;
const error: RefusedRequest = {
  ...{ id: newId('req'), tenantId: newId('ten'), keyId: newId('key') },
  ...{ at: '2026-11-24T10:00:00.000Z', code: 'overloaded_error' },
};

describe('how a request with usage ended', () => {
  it('is complete only if its client got the whole answer', () => {
    for (const one of [life, null]) expect(endOf(ended('complete', one), null)).toMatch(/: the whole answer was sent$/);
    expect(endOf(ended('complete', { ...life, late: true }), null)).toMatch(/: all of the text was sent\. .* an error/);
    expect(endOf(ended('complete'), error)).toMatch(/the client got the error overloaded_error .* is charged$/);
  });

  it('names who ended it, and that it was settled later', () => {
    expect(endOf(ended('upstream_error'), error)).toMatch(/^upstream_error: the backend broke off; .* is charged$/);
    expect(endOf(ended('client_closed', { ...life, late: true }), null)).toMatch(/^client_closed: .*settled later$/);
  });
});

it('the invoice of a request is missing while its month is open, and if nothing was debited in it', () => {
  const invoice = { period: '2026-11', accountingNumber: 7, status: 'paid' } as const;
  expect(invoiceOf({ invoice, monthClosed: true })).toBe('7 of 2026-11 (paid)');
  expect(invoiceOf({ invoice: null, monthClosed: false })).toBe('its month is open');
  expect(invoiceOf({ invoice: null, monthClosed: true })).toBe('none: nothing was debited in its month');
});
