import { AdmissionStore } from '@tollgate/admission';
import { Controller, Inject } from '@nestjs/common';
import type { BalanceUpdate, BillingSummary, CreditState, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { allBudgetUpdates } from '../budgets/budget-rows';
import { BillingDataSource } from '../database';
import { readBooks } from '../ledger/books-store';
import { balanceUpdate } from '../ledger/core/books';
import { BILLING_OPTIONS, type ServiceOptions } from '../options';
import { billingSummary } from './billing-summary';
import { billingFleet, tenantBalances } from './fleet';
import { HeldSum } from './held-sum';
import { creditState, spendableNanos } from './spendable';

@Controller()
export class SummaryController {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly admission: AdmissionStore,
    private readonly heldSum: HeldSum,
    @Inject(BILLING_OPTIONS) private readonly options: ServiceOptions,
  ) {}

  @MessagePattern('billing.summary')
  summary(request: RequestOf<'billing.summary'>): Promise<BillingSummary> {
    return billingSummary(this.dataSource, request, this.options.now());
  }

  @MessagePattern('billing.credit.spendable')
  async spendable({ tenantId }: { tenantId: string }): Promise<ReplyOf<'billing.credit.spendable'>> {
    return { spendableNanos: (await spendableNanos(this.admission, tenantId))?.toString() ?? null };
  }

  @MessagePattern('billing.credit.state')
  state({ tenantId }: { tenantId: string }): Promise<CreditState> {
    return creditState(this.dataSource, this.admission, tenantId);
  }

  @MessagePattern('billing.tenants.balances')
  balances({ ids }: RequestOf<'billing.tenants.balances'>): Promise<ReplyOf<'billing.tenants.balances'>> {
    return tenantBalances(this.dataSource, ids, this.options.now());
  }

  @MessagePattern('billing.fleet')
  async fleet(): Promise<ReplyOf<'billing.fleet'>> {
    const [fleet, held] = await Promise.all([billingFleet(this.dataSource), this.heldSum.now()]);
    return { ...fleet, held: held && { nanos: String(held.nanos), requests: held.requests } };
  }

  @MessagePattern('billing.credit.news')
  async balanceUpdate({ tenantId }: { tenantId: string }): Promise<BalanceUpdate | null> {
    const books = await readBooks(this.dataSource.manager, tenantId);
    const set = await allBudgetUpdates(this.dataSource.manager, tenantId);
    return books && { ...balanceUpdate(books, []), ...(set.length > 0 && { budgets: set }) };
  }
}
