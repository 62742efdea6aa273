import type { Booked } from '../../../apps/console/src/api/answers';
import { ApiFailure } from '../../../apps/console/web/src/backend/api';
import {
  sendBooking,
  unansweredOf,
  type Booking,
  type Kept,
} from '../../../apps/console/web/src/pages/operator-bookings';

const BOOKING: Booking = { kind: 'topup', amountCents: 2_500, reason: 'paid', ref: 'console-1' };
const BOOKED = { balanceCents: 2_500, created: true } as Booked;
const failureOf = (status: number, code: string) => new ApiFailure(status, code, `as ${code}`, 'req_1');

let kept: Kept;
beforeEach(() => {
  const items = new Map<string, string>();
  kept = {
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => void items.set(name, value),
    removeItem: (name) => void items.delete(name),
  };
});
const send = (answer: Booked | ApiFailure | null, booking = BOOKING) =>
  sendBooking({ tenantId: 'ten_1', booking, kept }, () =>
    answer instanceof ApiFailure ? Promise.reject(answer) : Promise.resolve(answer),
  );
const unanswered = () => unansweredOf('ten_1', kept);

it('a booking is kept from before it is sent, so a reload loses nothing, and forgotten when it is booked', async () => {
  const during: (Booking | null)[] = [];
  const post = () => {
    during.push(unanswered(), unansweredOf('ten_2', kept));
    return Promise.resolve(BOOKED);
  };
  await sendBooking({ tenantId: 'ten_1', booking: BOOKING, kept }, post);
  expect(during).toEqual([BOOKING, null]);
  expect(unanswered()).toBeNull();
});

it.each([
  ['no answer', failureOf(0, 'unreachable')],
  ['an answer that broke off', null],
  ['a service that did not answer', failureOf(503, 'unavailable')],
  ['a server that failed', failureOf(500, 'internal_error')],
])('%s: the booking is kept with its reference', async (_, answer) => {
  await expect(send(answer)).rejects.toBeInstanceOf(ApiFailure);
  expect(unanswered()).toEqual(BOOKING);
});

it.each([
  [400, 'invalid_amount'],
  [401, 'unauthenticated'],
  [409, 'insufficient_credit'],
])('a first try that is refused (%i %s) is not booked, and not kept', async (status, code) => {
  await expect(send(failureOf(status, code))).rejects.toMatchObject({ code, message: `as ${code}` });
  expect(unanswered()).toBeNull();
});

it('a repeat that is refused does not say what became of the first try, which stays kept', async () => {
  await expect(send(null)).rejects.toBeInstanceOf(ApiFailure);
  await expect(send(failureOf(401, 'unauthenticated'), { ...BOOKING, amountCents: 9 })).rejects.toBeInstanceOf(
    ApiFailure,
  );
  expect(unanswered()).toEqual(BOOKING);
  await send({ ...BOOKED, created: false });
  expect(unanswered()).toBeNull();
});

it('a repeat with other values says that the first try was booked, and not that a reference was used', async () => {
  await expect(send(null)).rejects.toBeInstanceOf(ApiFailure);
  await expect(send(failureOf(409, 'ref_conflict'), { ...BOOKING, amountCents: 9 })).rejects.toMatchObject({
    code: 'ref_conflict',
    requestId: 'req_1',
    message: expect.stringMatching(/^Nothing was booked now\. .* is booked with other values\./) as string,
  });
  expect(unanswered()).toBeNull();
});
