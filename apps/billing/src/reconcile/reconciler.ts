import { Inject, Injectable } from '@nestjs/common';
import { BillingDataSource } from '../database';
import type { Clocks } from '../ledger/clocks';
import { BILLING_OPTIONS } from '../options';
import { auditLedger } from './audit';
import { auditCommonRows } from './common-audit';
import type { Findings } from './findings';
import { auditInvoiceNumbers } from './invoice-audit';
import { auditMissingBooks } from './missing-books';
import { StateAudit } from './state-audit';
import { Stores } from './stores';
import { UsageAudit } from './usage-audit';

/**
 * Proves from the stores alone that nothing was lost or doubled between a request and the ledger, in constant memory,
 * while traffic runs:
 *
 * 1. The charges match metering's events, and metering's sums are right (usage-audit.ts).
 * 2. The ledger in itself, in one snapshot per page of tenants: charges = usage debits + carried remainder; balance = Σ
 *    entries; postings sum to zero; every entry has its place in the hash chain; every charge is covered once or still
 *    gathering; invoices are the sums of their months, numbered without a gap; the spending that budgets watch is the
 *    sum of the charges. No tenant of the ledger lacks books. The rows that all tenants share are right
 *    (common-audit.ts).
 * 3. The admission store and auth have what the books have of each tenant (state-audit.ts).
 */
@Injectable()
export class Reconciler {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly usage: UsageAudit,
    private readonly stores: Stores,
    private readonly states: StateAudit,
    @Inject(BILLING_OPTIONS) private readonly options: Clocks & { currency: () => string },
  ) {}

  /**
   * Rejects with UnavailableError when auth, metering or the admission store does not answer. Then the run makes no
   * statement about the books.
   */
  async run(findings: Findings, stopped: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const end = AbortSignal.any([stopped, failed.signal]);
    const parts = [this.usage.events(findings, end), this.usage.rollUps(findings, end), this.tenants(findings, end)];
    // Each part keeps one connection of a database busy. When one fails, the others end.
    for (const part of parts) part.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(parts);
    end.throwIfAborted();
  }

  private async tenants(findings: Findings, stopped: AbortSignal): Promise<void> {
    for (const audit of [auditMissingBooks, auditInvoiceNumbers, auditCommonRows]) {
      const { differences, truncated } = await audit(this.dataSource, this.options);
      findings.add(differences, truncated);
    }
    for (let after: string | undefined; ;) {
      stopped.throwIfAborted();
      const { ids, next } = await this.stores.nextTenants(after);
      const { totals, differences, truncated, heads } = await auditLedger(this.dataSource, ids, stopped);
      findings.add(differences, truncated);
      findings.journal.add(heads);
      findings.chargesNanos += totals.chargesNanos;
      findings.debitsNanos += totals.debitsNanos;
      findings.carriedNanos += totals.carriedNanos;
      await this.states.compare(ids, { after, findings, stopped });
      findings.tenants += ids.length;
      if (next === null) return;
      after = next;
    }
  }
}
