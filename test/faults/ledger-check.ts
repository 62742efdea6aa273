import type { Database } from '../e2e/deployment';
import { ledgerOf, type Books } from '../e2e/fixtures';
import type { Outcome } from './client-request';

/** Answers that their client saw whole and the ledger has not, or not at their exact cost: empty when all is well. */
export function missing(outcomes: readonly Outcome[], books: ReadonlyMap<string, Books>): string[] {
  return outcomes.flatMap(({ failure, requestId, tenantId, costNanos }) => {
    if (failure !== null) return [];
    const charged = books.get(tenantId)?.charges.get(requestId!);
    return charged === costNanos ? [] : `${requestId}: ${charged} charged, ${costNanos} answered`;
  });
}

export async function booksOf(database: Database, tenantIds: Iterable<string>): Promise<Map<string, Books>> {
  const books = new Map<string, Books>();
  for (const id of new Set(tenantIds)) books.set(id, await ledgerOf(database, id));
  return books;
}

/**
 * What is wrong with the books once nothing runs any more: each answer that was seen whole is charged once at its exact cost; what else is charged are requests that
 * failed on their way; debits and the carried rest are the charges; the balance is what is left and not below zero.
 */
export function faultsOf(
  outcomes: readonly Outcome[],
  books: ReadonlyMap<string, Books>,
  creditCents: number,
): string[] {
  const faults = missing(outcomes, books);
  const known = new Set(outcomes.map(({ requestId }) => requestId));
  for (const [tenantId, { charges, debitCents, carriedNanos, balanceCents, coveredTwice }] of books) {
    const say = (fault: string) => faults.push(`${tenantId}: ${fault}`);
    const charged = [...charges.values()].reduce((sum, nanos) => sum + nanos, 0);
    if (debitCents * 1e7 + carriedNanos !== charged)
      say(`${debitCents} cents and ${carriedNanos} nanos are debited for ${charged} nanos of charges`);
    if (balanceCents !== creditCents - debitCents || balanceCents < 0) say(`the balance is ${balanceCents} cents`);
    if (coveredTwice > 0) say(`${coveredTwice} charges are in two entries`);
    // A plain request that broke had not heard its id.
    const nameless = outcomes.filter((one) => one.tenantId === tenantId && one.failure !== null && !one.requestId);
    const unknown = [...charges.keys()].filter((id) => !known.has(id));
    if (unknown.length > nameless.length)
      say(`${unknown.length} charges are of no request that was made; ${nameless.length} requests broke`);
  }
  return faults;
}
