import { DEFAULT_LEASE_MS, type AdmissionStore, type HoldView } from '@tollgate/admission';
import type { Difference } from '@tollgate/contracts';
import { delay } from '@tollgate/runtime';
import type { Charges } from './charges';

const PAGE = 500;
/** A single look may catch a movement. */
const LOOK_AGAIN_MS = 250;
/** The sweeper ends a pending hold about a second after its deadline. */
const EXPIRED_WITHIN_MS = DEFAULT_LEASE_MS + 60_000;
/** The clock of a store may be set back. A heartbeat with a time further ahead than this is not genuine. */
const MAX_AHEAD_MS = 60_000;
/** An update takes well under a second. A hold whose charge was gathered longer ago has been forgotten. */
const RELEASED_WITHIN_MS = 60_000;
/**
 * Twice the longest wait between two attempts of the sweeper. Usage that has not reached the books by then will not get
 * there by itself.
 */
const CHARGED_WITHIN_MS = 600_000;

/**
 * The tenant's holds that nobody will end any more, each with the step that is missing. Running requests and usage on
 * its way to the books are not among them.
 */
export async function orphanHolds(
  admission: AdmissionStore,
  charges: Charges,
  tenantId: string,
): Promise<Difference[]> {
  const first = await look(admission, charges, tenantId);
  if (first.size === 0) return [];
  await delay(LOOK_AGAIN_MS);
  const second = await look(admission, charges, tenantId);
  return [...first].flatMap(([id, found]) => (second.has(id) ? [found] : []));
}

async function look(admission: AdmissionStore, charges: Charges, tenantId: string): Promise<Map<string, Difference>> {
  const orphans = new Map<string, Difference>();
  for (let after: string | undefined; ;) {
    const page = await admission.holds({ tenantId, limit: PAGE, ...(after === undefined ? {} : { after }) });
    const ages = await charges.ages(page.map((hold) => hold.id));
    for (const hold of page) {
      const found = judge(hold, ages.get(hold.id));
      if (found) orphans.set(hold.id, { ...found, tenantId, ids: [hold.id] });
    }
    if (page.length < PAGE) return orphans;
    after = page.at(-1)!.id;
  }
}

/** @param chargedMs time since its charge was gathered; undefined if it is not charged */
function judge(
  { state, nanos, quietMs }: HoldView,
  chargedMs: number | undefined,
): Pick<Difference, 'check' | 'expected' | 'actual'> | null {
  const actual = `${state}, ${nanos} nanos, quiet for ${quietMs} ms`;
  if (state === 'pending') {
    const lives = quietMs <= EXPIRED_WITHIN_MS && quietMs >= -MAX_AHEAD_MS;
    return lives ? null : { check: 'every pending hold is renewed or expires', expected: 'expired', actual };
  }
  if (chargedMs === undefined) {
    if (quietMs <= CHARGED_WITHIN_MS) return null;
    return { check: 'every settled hold reaches the books', expected: 'charged', actual };
  }
  if (chargedMs <= RELEASED_WITHIN_MS) return null;
  return { check: 'every hold is released once its charge is gathered', expected: 'released', actual };
}
