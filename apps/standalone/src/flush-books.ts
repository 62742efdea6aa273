import type { AdmissionStore } from '@tollgate/admission';
import { delay, logger } from '@tollgate/runtime';

const FLUSH_TIMEOUT_MS = 10_000;
const POLL_MS = 20;
const PAGE_TENANTS = 500;

/**
 * Waits until billing has gathered every settled hold. False, with a log line, if that takes longer than
 * FLUSH_TIMEOUT_MS (other processes on the same database may be settling all the time). Nothing depends on it: a hold
 * that is left waits for the next process.
 */
export async function flushBooks(admission: AdmissionStore): Promise<boolean> {
  const until = Date.now() + FLUSH_TIMEOUT_MS;
  while (await hasSettledHolds(admission)) {
    if (Date.now() > until) {
      logger('standalone').warn('some served usage is not in the books yet; the next process continues with it');
      return false;
    }
    await delay(POLL_MS);
  }
  return true;
}

async function hasSettledHolds(admission: AdmissionStore): Promise<boolean> {
  for (let after: string | undefined; ;) {
    const page = await admission.snapshot({ limit: PAGE_TENANTS, ...(after === undefined ? {} : { after }) });
    if (page.some((tenant) => tenant.settledHolds > 0)) return true;
    if (page.length < PAGE_TENANTS) return false;
    after = page.at(-1)!.tenantId;
  }
}
