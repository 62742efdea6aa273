import type { BillingFleet, IssuedInvoice, MeteringFleet, Page, ReconcileRun, TenantRow } from '@tollgate/contracts';

// What the backend answers to operators alone.

/** A backend of `tollgate.yaml`, as the gateways see it that reported in the last seconds. */
export interface FleetBackend {
  backend: string;
  models: string[];
  drainedAt: string | null;
  gateways: number;
  unhealthy: number;
  broken: number;
  inFlight: number;
}

/** The whole installation. */
export interface Fleet extends Omit<MeteringFleet, 'backends'>, BillingFleet {
  backends: FleetBackend[];
  /** The newest run. Null: it never ran. */
  reconcile: ReconcileRun | null;
}

/** A tenant with its money. */
export interface OperatedTenant extends TenantRow {
  balanceCents: number;
  /** What was posted to the ledger this month (UTC). */
  debitedCents: number;
}

/** Invoices of all tenants. `tenantName` is null if auth does not know it now. */
export type InvoiceList = Page<IssuedInvoice & { tenantName: string | null }>;
export type TenantList = Page<OperatedTenant>;
