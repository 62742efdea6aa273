import { Counter, Gauge, metrics } from '@tollgate/runtime';

const charges = new Counter({
  name: 'tollgate_billing_charges_total',
  help: 'Charges taken in, by what became of them',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const postings = new Counter({
  name: 'tollgate_billing_tenant_postings_total',
  help: 'Postings of gathered usage to the ledger, one per tenant and run',
  registers: [metrics],
});

/** Once the batch is committed. */
export function countCharges({
  gathered,
  repeated,
  rejected,
}: {
  gathered: number;
  repeated: number;
  rejected: number;
}): void {
  charges.inc({ result: 'gathered' }, gathered);
  charges.inc({ result: 'repeated' }, repeated);
  charges.inc({ result: 'rejected' }, rejected);
}

/** Once they are committed. */
export function countPostings(tenants: number): void {
  postings.inc(tenants);
}

const invoices = new Counter({
  name: 'tollgate_billing_invoices_total',
  help: 'Invoices issued by this process',
  registers: [metrics],
});

const waiting = new Gauge({
  name: 'tollgate_billing_months_waiting',
  help: 'Months that are over and stay open, as the credit does not pay for their usage',
  registers: [metrics],
});

/** Once they are committed. */
export function countClosed(closed: { invoices: number; waiting: number }): void {
  invoices.inc(closed.invoices);
  waiting.set(closed.waiting);
}
