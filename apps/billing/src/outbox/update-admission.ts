import { parseBalanceUpdate, type AdmissionStore } from '@tollgate/admission';
import type { BalanceUpdate } from '@tollgate/contracts';
import { logger, settlesWithin } from '@tollgate/runtime';

/**
 * Shorter than the deadline of the booking request. So the caller learns that the money is booked, even if the store
 * does not answer.
 */
const BOOKED_WAIT_MS = 2_000;

/**
 * Sends just committed balance updates to the admission store directly. The topic delivers them too, but later. Never
 * rejects: updates may arrive twice and in any order, and a store that is unavailable now gets them from the topic.
 */
export async function updateAdmission(admission: AdmissionStore, updates: readonly BalanceUpdate[]): Promise<void> {
  try {
    await admission.applyBalanceUpdates(updates.map(parseBalanceUpdate));
  } catch (error) {
    logger('billing').warn(
      { err: error },
      'the admission store was not reached directly; the topic will deliver the balance update',
    );
  }
}

/**
 * The same for limits of a tenant (a suspension, a budget), which are answered once they are in force. Rejects when the
 * store does not accept them: the change stays committed, the topic delivers it, and the caller repeats the request.
 */
export async function enforceAtAdmission(admission: AdmissionStore, updates: readonly BalanceUpdate[]): Promise<void> {
  await admission.applyBalanceUpdates(updates.map(parseBalanceUpdate));
}

/**
 * The same for money, which is in force when it is answered. A slow store does not delay the answer beyond
 * BOOKED_WAIT_MS: the books have the entry, and the balance update is on its way.
 */
export async function updateAfterBooking(
  admission: AdmissionStore,
  update: BalanceUpdate,
  waitMs: number = BOOKED_WAIT_MS,
): Promise<void> {
  if (!(await settlesWithin(waitMs, updateAdmission(admission, [update]))))
    logger('billing').warn(
      { tenantId: update.tenantId },
      'a booking was answered before the admission store confirmed it',
    );
}
