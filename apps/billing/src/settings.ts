import { WholeNumber } from '@tollgate/runtime';

const MAX_CLOSE_MINUTES = 20 * 24 * 60;

/** What an operator decides of billing. */
export class BillingSettings {
  /** A month's invoices are closed so long after its end; what arrives later is billed in the running month. */
  @WholeNumber(0, MAX_CLOSE_MINUTES) TOLLGATE_INVOICE_CLOSE_MINUTES: number = 60;
}
