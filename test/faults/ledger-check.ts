import type { Database } from '../e2e/deployment';
import { ledgerOf, type Books } from '../e2e/fixtures';
import type { Outcome } from './client-request';

const NANOS_PER_CENT = 10_000_000;

/**
 * Whether the ledger may lack an answer that its client saw whole: only where a gateway died together with an emptied
 * Redis (docs/money.md).
 */
export type MayLack = (outcome: Outcome) => boolean;
export const LACKS_NOTHING: MayLack = () => false;

/** Answers that their client saw whole and the ledger has not, or not at their exact cost: empty when all is well. */
export function missing(
  outcomes: readonly Outcome[],
  books: ReadonlyMap<string, Books>,
  mayLack: MayLack = LACKS_NOTHING,
): string[] {
  return outcomes.flatMap((outcome) => {
    const { failure, requestId, tenantId, costNanos } = outcome;
    if (failure !== null) return [];
    const charged = books.get(tenantId)?.charges.get(requestId!);
    if (charged === costNanos || (charged === undefined && mayLack(outcome))) return [];
    return `${requestId}: ${charged} charged, ${costNanos} answered`;
  });
}

export async function booksOf(database: Database, tenantIds: Iterable<string>): Promise<Map<string, Books>> {
  const books = new Map<string, Books>();
  for (const id of new Set(tenantIds)) books.set(id, await ledgerOf(database, id));
  return books;
}

/** What a tenant was given, and by how much its charges may be more. */
export interface Credit {
  cents: number;
  mayOverdrawNanos: number;
}

/**
 * What is left of a tenant's credit when everything that it was charged is paid. The books' own balance cannot tell: it
 * stays at zero, and the usage waits for the next top-up.
 */
export const leftNanos = ({ balanceCents, carriedNanos }: Books): number =>
  balanceCents * NANOS_PER_CENT - carriedNanos;

/**
 * What is wrong with the books once nothing runs any more: each answer that was seen whole is charged once at its exact
 * cost; what else is charged are requests that failed on their way; debits and the carried rest are the charges; the
 * balance is what is left, and pays for all charges.
 */
export function faultsOf(
  outcomes: readonly Outcome[],
  books: ReadonlyMap<string, Books>,
  creditOf: (tenantId: string) => Credit,
  mayLack: MayLack = LACKS_NOTHING,
): string[] {
  const faults = missing(outcomes, books, mayLack);
  const known = new Set(outcomes.map(({ requestId }) => requestId));
  for (const [tenantId, own] of books) {
    const { charges, debitCents, carriedNanos, balanceCents, coveredTwice } = own;
    const credit = creditOf(tenantId);
    const say = (fault: string) => faults.push(`${tenantId}: ${fault}`);
    const charged = [...charges.values()].reduce((sum, nanos) => sum + nanos, 0);
    if (debitCents * NANOS_PER_CENT + carriedNanos !== charged)
      say(`${debitCents} cents and ${carriedNanos} nanos are debited for ${charged} nanos of charges`);
    if (balanceCents !== credit.cents - debitCents || balanceCents < 0) say(`the balance is ${balanceCents} cents`);
    if (leftNanos(own) < -credit.mayOverdrawNanos)
      say(`${-leftNanos(own)} nanos are charged beyond the credit, and ${credit.mayOverdrawNanos} may be`);
    if (coveredTwice > 0) say(`${coveredTwice} charges are in two entries`);
    const nameless = outcomes.filter((one) => one.tenantId === tenantId && isNameless(one));
    const unknown = [...charges.keys()].filter((id) => !known.has(id));
    if (unknown.length > nameless.length)
      say(`${unknown.length} charges are of no request that was made; ${nameless.length} requests broke`);
  }
  for (const { tenantId, requestId, failure } of outcomes.filter(isRefused)) {
    if (books.get(tenantId)?.charges.has(requestId!)) faults.push(`${requestId}: charged, and refused with ${failure}`);
  }
  return faults;
}

/**
 * It may have run, and had not heard its id when it broke; what the load balancer itself says has an id of its own, a
 * UUID.
 */
const isNameless = ({ failure, requestId }: Outcome) =>
  failure !== null &&
  (requestId === null ? /^(broken|silent)/.test(failure) : /^50\d .*/.test(failure) && isUuid(requestId));

const isUuid = (requestId: string) => requestId.includes('-');

/**
 * For want of credit or by a limit: it did not run. A 503 may have run, when the admission store took its settlement
 * and could not say so any more.
 */
const isRefused = ({ failure }: Outcome) => failure !== null && /^4\d\d /.test(failure);
