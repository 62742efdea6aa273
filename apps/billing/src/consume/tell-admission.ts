import { parseBalanceUpdate, type AdmissionStore } from '@tollgate/admission';
import type { BalanceUpdate } from '@tollgate/contracts';
import { logger, settlesWithin } from '@tollgate/runtime';

/**
 * Within the deadline of the request that booked it: money that is booked is answered as booked, whether the store has
 * heard of it or not.
 */
const BOOKED_WAIT_MS = 2_000;

/**
 * Tells the admission store at once what was just committed and is on its way as news too: it is then in force at once,
 * whatever the topic takes. Never rejects: news may come twice and in any order, and where the store cannot be reached,
 * those of the topic will.
 */
export async function tellAdmission(admission: AdmissionStore, news: readonly BalanceUpdate[]): Promise<void> {
  try {
    await admission.applyBalanceUpdates(news.map(parseBalanceUpdate));
  } catch (error) {
    logger('billing').warn({ err: error }, 'the admission store hears of a change by the news alone');
  }
}

/**
 * The same for what limits a tenant (a suspension, a budget), which is answered once it is in force. Rejects when the
 * store does not take it: the change is committed, the news of the topic bring it, and whoever asked for it asks again.
 */
export async function enforceAtAdmission(admission: AdmissionStore, news: readonly BalanceUpdate[]): Promise<void> {
  await admission.applyBalanceUpdates(news.map(parseBalanceUpdate));
}

/**
 * The same for money, which is in force when it is answered. A store that does not answer in time does not keep the
 * answer back: the books have the entry, and the news are on their way.
 */
export async function tellBooked(
  admission: AdmissionStore,
  news: BalanceUpdate,
  waitMs: number = BOOKED_WAIT_MS,
): Promise<void> {
  if (!(await settlesWithin(waitMs, tellAdmission(admission, [news]))))
    logger('billing').warn(
      { tenantId: news.tenantId },
      'money is booked, and answered before the admission store heard of it',
    );
}
