import type { PriceStamp, UsageDraft } from '@tollgate/contracts';

/** The prices that are or were in force. */
export interface Prices {
  /** The price of the version that the event names; undefined: its model never had it, as far as is known. */
  find(event: Pick<UsageDraft, 'model' | 'kind' | 'price'>): PriceStamp | undefined;
  /**
   * Looks at the sources once more, as an event has a version that is not known. True: `find` may know more now.
   * Rejects when the database does.
   */
  lookAgain(): Promise<boolean>;
}
