import type { PriceStamp, UsageDraft } from '@tollgate/contracts';

/** All prices that are or were in force. */
export interface Prices {
  /** The price of the version that the event names. Undefined if the model is not known to have had it. */
  find(event: Pick<UsageDraft, 'model' | 'kind' | 'price'>): PriceStamp | undefined;
  /**
   * Reads the sources again, because an event names an unknown version. True: `find` may know more now. Rejects when
   * the database does.
   */
  lookAgain(): Promise<boolean>;
}
