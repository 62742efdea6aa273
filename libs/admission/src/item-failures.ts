import { UnavailableError } from '@tollgate/contracts';

/**
 * The books have not been asked for this tenant's credit yet: the store was emptied, or the tenant is new. Try again
 * when `known` resolves.
 */
export class TenantUnknownError extends UnavailableError {
  constructor(
    tenantId: string,
    readonly known: Promise<void>,
  ) {
    super(`the credit of ${tenantId} is not known yet`);
    this.name = 'TenantUnknownError';
  }
}

/**
 * Replaces one item's result; the other results of the call stand.
 * - RangeError: the caller must not send this item.
 * - TenantUnknownError: the tenant's credit is not known yet.
 * - Another UnavailableError: the part of the store that has the tenant does not answer.
 */
export type ItemFailure = RangeError | UnavailableError;

/**
 * Sends the valid items, in order. An error replaces the result of an invalid item, and the others do not fail with it.
 */
export async function sendFaultless<I, O>(
  items: readonly I[],
  mistakeOf: (item: I) => RangeError | undefined,
  send: (faultless: readonly I[]) => Promise<readonly (O | ItemFailure)[]>,
): Promise<(O | ItemFailure)[]> {
  const mistakes = items.map(mistakeOf);
  const faultless = items.filter((_, index) => !mistakes[index]);
  const answers = faultless.length === 0 ? [] : await send(faultless);
  let next = 0;
  return mistakes.map((mistake) => mistake ?? answers[next++]!);
}
