import { NANOS_PER_CENT } from '@tollgate/contracts';
import { Counter, Gauge, Histogram, metrics, PolledGauge } from '@tollgate/runtime';

const charges = new Counter({
  name: 'tollgate_billing_charges_total',
  help: 'Charges received, by result: gathered, repeated, rejected',
  labelNames: ['result'] as const,
  registers: [metrics],
});

const gatheredNanos = new Counter({
  name: 'tollgate_billing_gathered_nanos_total',
  help: 'Charges gathered into the books, in nanos of the currency unit',
  registers: [metrics],
});

const postedNanos = new Counter({
  name: 'tollgate_billing_posted_nanos_total',
  help: 'Debits posted to the ledger for usage, in nanos of the currency unit: whole cents',
  registers: [metrics],
});

const postings = new Counter({
  name: 'tollgate_billing_tenant_postings_total',
  help: 'Postings of gathered usage to the ledger, one per tenant and run',
  registers: [metrics],
});

/** Call it once the batch is committed. */
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

/** Call it once the postings are committed. */
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
  help: 'Months that ended but stay open, because the credit does not cover their usage or the books refuse',
  registers: [metrics],
});

/** Call it once the months are committed. */
export function countClosed(closed: { invoices: number; waiting: number }): void {
  invoices.inc(closed.invoices);
  waiting.set(closed.waiting);
}

const lag = new Histogram({
  name: 'tollgate_billing_charge_lag_seconds',
  help: 'Time from the end of a request to the commit of its charge in the books, which releases its hold',
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600],
  registers: [metrics],
});

/** Call it once the batch is committed. Clocks may differ, so it never observes less than zero. */
export function observeLag(charges: readonly { endedAt: Date; costNanos: bigint }[]): void {
  const nowMs = Date.now();
  gatheredNanos.inc(Number(charges.reduce((sum, { costNanos }) => sum + costNanos, 0n)));
  for (const { endedAt } of charges) lag.observe(Math.max(0, nowMs - endedAt.getTime()) / 1_000);
}

const debitLag = new Histogram({
  name: 'tollgate_billing_debit_lag_seconds',
  help: 'Time from the end of a request to the commit of its debit, for the first request of each usage entry',
  buckets: [0.5, 1, 1.5, 2, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400],
  registers: [metrics],
});

/** Call it once the entries are committed. Clocks may differ, so it never observes less than zero. */
export function observeDebits(firstEnded: readonly Date[], debitedCents: bigint): void {
  const nowMs = Date.now();
  postedNanos.inc(Number(debitedCents * NANOS_PER_CENT));
  for (const endedAt of firstEnded) debitLag.observe(Math.max(0, nowMs - endedAt.getTime()) / 1_000);
}

/** Set by a query at each scrape, too. */
export const uncovered = new PolledGauge({
  name: 'tollgate_billing_uncovered_seconds',
  help: 'How long the oldest usage has waited for credit that covers it; 0 if none is waiting',
});

/** Set by a query at each scrape. */
export const postingOverdue = new PolledGauge({
  name: 'tollgate_billing_posting_overdue_seconds',
  help: 'How late the debit of a whole cent is; 0 if none is due',
});
