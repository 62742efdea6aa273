import type { Database } from '../e2e/deployment';
import { ledgerIn, type Books } from '../e2e/fixtures';
import type { Outcome } from './client-request';

const NANOS_PER_CENT = 10_000_000;

/**
 * Whether the ledger may lack an answer that its client saw complete. It may only if a gateway died together with an
 * emptied Redis (docs/money.md).
 */
export type MayLack = (outcome: Outcome) => boolean;
export const LACKS_NOTHING: MayLack = () => false;

/** The answers that a client saw complete but that are not in the ledger at their exact cost. */
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

/** The books of these tenants. On one connection, because a log-in takes more processor time than the queries. */
export function booksOf(database: Database, tenantIds: Iterable<string>): Promise<Map<string, Books>> {
  return database(async (client) => {
    const books = new Map<string, Books>();
    for (const id of new Set(tenantIds)) books.set(id, await ledgerIn(client, id));
    return books;
  });
}

/** The charged output tokens by request id. */
export async function chargedTokens(database: Database, ids: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await database((client) =>
    client.query<{ id: string; completion_tokens: number }>(
      'SELECT id, completion_tokens FROM metering.usage_event WHERE id = ANY($1)',
      [ids],
    ),
  );
  return new Map(rows.map(({ id, completion_tokens }) => [id, completion_tokens]));
}

/** The credit of a tenant, and by how much its charges may exceed it. */
export interface Credit {
  cents: number;
  mayOverdrawNanos: number;
}

/**
 * A tenant's credit minus all its charges. The balance in the books cannot show an overdraft, because it stays at zero
 * and the usage waits for the next top-up.
 */
export const leftNanos = ({ balanceCents, carriedNanos }: Books): number =>
  balanceCents * NANOS_PER_CENT - carriedNanos;

/**
 * The faults of the books when nothing runs any more. Each complete answer must be charged once at its exact cost.
 * Other charges must be those of requests that failed on their way. Debits plus the carried remainder must be the
 * charges. The balance must be the credit minus the debits, and not negative.
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
      say(`${-leftNanos(own)} nanos are charged beyond the credit; ${credit.mayOverdrawNanos} are allowed`);
    if (coveredTwice > 0) say(`${coveredTwice} charges are in two entries`);
    const nameless = outcomes.filter((one) => one.tenantId === tenantId && isNameless(one));
    const unknown = [...charges.keys()].filter((id) => !known.has(id));
    if (unknown.length > nameless.length)
      say(`${unknown.length} charges belong to no known request; ${nameless.length} requests broke`);
  }
  for (const { tenantId, requestId, failure } of outcomes.filter(isRefused)) {
    if (books.get(tenantId)?.charges.has(requestId!)) faults.push(`${requestId}: charged, but refused with ${failure}`);
  }
  return faults;
}

/** Whether a request may have run, but its client does not know its id. Errors of HAProxy have a UUID as id. */
const isNameless = ({ failure, requestId }: Outcome) =>
  failure !== null &&
  (requestId === null ? /^(broken|silent)/.test(failure) : /^50\d .*/.test(failure) && isUuid(requestId));

const isUuid = (requestId: string) => requestId.includes('-');

/**
 * Whether a request was refused for its credit or by a limit, so that it did not run. A request with 503 may have run,
 * if the admission store accepted its settlement but could not confirm it.
 */
const isRefused = ({ failure }: Outcome) => failure !== null && /^4\d\d /.test(failure);
