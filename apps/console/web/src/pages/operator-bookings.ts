import type { Booked } from '../../../src/api/answers';
import { ApiFailure } from '../backend/api';

/** A booking of credit. The backend enters one reference once, however often it is sent. */
export interface Booking {
  kind: string;
  amountCents: number;
  reason: string;
  ref: string;
}

/** Where bookings without an answer are kept: the storage of the tab, so that they outlive a reload. */
export interface Kept {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

const nameOf = (tenantId: string) => `tollgate.booking.${tenantId}`;
const OTHER_VALUES =
  'Nothing was booked now. The booking before it, which was not answered, is booked with other values. ' +
  'Look at the entries before you book again.';

/** The booking of a tenant that was sent and not answered. It may be in the ledger. */
export function unansweredOf(tenantId: string, kept: Kept): Booking | null {
  const text = kept.getItem(nameOf(tenantId));
  return text === null ? null : (JSON.parse(text) as Booking);
}

/** Whether something may have been booked despite the failure: there was no answer, or the server failed. */
export const isUnanswered = (error: unknown): error is ApiFailure =>
  error instanceof ApiFailure && (error.status === 0 || error.status >= 500);

export const isBookedWithOtherValues = (error: unknown): boolean =>
  error instanceof ApiFailure && error.code === 'ref_conflict';

/**
 * Sends a booking. It is kept from before it is sent until an answer says what became of its reference, so that a
 * repeat has the same reference. A refusal of a repeat, as after the end of the session, does not say that.
 */
export async function sendBooking(
  { tenantId, booking, kept }: { tenantId: string; booking: Booking; kept: Kept },
  post: (booking: Booking) => Promise<Booked | null>,
): Promise<Booked> {
  const before = kept.getItem(nameOf(tenantId));
  kept.setItem(nameOf(tenantId), JSON.stringify(booking));
  try {
    const booked = await post(booking);
    // Its head arrived, and its body did not.
    if (booked === null) throw new ApiFailure(0, 'unreachable', 'The answer of the console broke off.', null);
    kept.removeItem(nameOf(tenantId));
    return booked;
  } catch (error) {
    if (isBookedWithOtherValues(error)) {
      kept.removeItem(nameOf(tenantId));
      const { status, code, requestId } = error as ApiFailure;
      throw new ApiFailure(status, code, OTHER_VALUES, requestId);
    }
    if (!isUnanswered(error)) {
      if (before === null) kept.removeItem(nameOf(tenantId));
      else kept.setItem(nameOf(tenantId), before);
    }
    throw error;
  }
}
