import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import {
  isId,
  MAX_KEY_BUDGETS,
  MAX_PAGE_ROWS,
  pageRows,
  RequestError,
  toPage,
  type BudgetState,
  type ReplyOf,
  type RequestOf,
  type SetBudget,
} from '@tollgate/contracts';
import { enqueue, type Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query, recordChange, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { enforceAtAdmission } from '../outbox/update-admission';
import { BillingDataSource } from '../database';
import { lockBooks } from '../ledger/books-store';
import { balanceUpdate } from '../ledger/core/books';
import { periodOf } from '../ledger/core/period';
import { BILLING_OPTIONS } from '../options';
import { budgetUpdate, budgetState, budgetStates, budgetStatesOf, setBudget, type BudgetRow } from './budget-rows';
import { HeldByKey } from './held-by-key';
import { IN_FORCE, reachedBy, recordReached, type WatchedRow } from './spending';
import { areThresholds, DEFAULT_THRESHOLDS_PERCENT } from './thresholds';

export interface BudgetOptions {
  /** The thresholds in the current configuration. */
  thresholdsPercent?: () => readonly number[];
  /** The clock that decides the month. */
  now: () => Date;
}

type SetRequest = RequestOf<'billing.budget.set'>;

/**
 * Monthly budgets of tenants and keys. The change, its balance update and the thresholds that it reaches commit
 * together, under the lock of the tenant's books. Admission then learns of the change directly, and again by the
 * balance update. The caller gets its answer once admission has it. No money moves, so the version of the books stays.
 */
@Injectable()
export class Budgets {
  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
    private readonly held: HeldByKey,
    @Inject(BILLING_OPTIONS) private readonly options: BudgetOptions,
  ) {}

  /**
   * RequestError not_found (tenant, key), invalid_budget, invalid_thresholds, too_many_budgets. UnavailableError when
   * auth or the admission store does not answer: set the budget again.
   */
  async set(request: SetRequest): Promise<BudgetState> {
    const { tenantId } = request;
    assertSetRequest(request);
    const keyId = await this.find(request);
    const { state, updates } = await transaction(this.dataSource, async (tx) => {
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      const { row, before, changed } = await write(tx, request, keyId, this.options.now());
      // Even if the budget stays the same: the store may have been unavailable when it was set.
      const updates = row ? [{ ...balanceUpdate(books, []), budgets: [budgetUpdate(row)] }] : [];
      if (changed) {
        await this.recordCrossed(tx, tenantId, row!);
        await enqueue(tx, 'credit-news', updates);
        const change = { before: shown(before), after: shown(row), ...(keyId !== '' && { target: keyId }) };
        await recordChange(tx, request.by, { action: 'budget.set', tenantId, ...change });
      }
      return { state: await budgetState(tx, { tenantId, keyId, period: this.period() }, this.thresholds()), updates };
    });
    if (updates.length > 0) await enforceAtAdmission(this.admission, updates);
    return state;
  }

  get({ tenantId, keyId }: RequestOf<'billing.budget.get'>): Promise<BudgetState> {
    const of = { tenantId, keyId: keyId ?? '', period: this.period() };
    return budgetState(this.dataSource.manager, of, this.thresholds());
  }

  /** RequestError invalid_parameter (keyIds). */
  async of({ tenantId, keyIds, byDefault }: RequestOf<'billing.budget.of'>): Promise<ReplyOf<'billing.budget.of'>> {
    for (const ids of [keyIds, byDefault ?? []])
      if (!Array.isArray(ids) || ids.length > MAX_PAGE_ROWS || !ids.every((id) => isId('key', id)))
        throw new RequestError('invalid_parameter', `keyIds must be a list of at most ${MAX_PAGE_ROWS} key ids.`);
    const of = { tenantId, keyIds, period: this.period() };
    const data = await budgetStatesOf(this.dataSource.manager, of, this.thresholds());
    const hasBudget = ({ budgetCents, keyId }: BudgetState) =>
      budgetCents === 'default' ? (byDefault?.includes(keyId!) ?? true) : budgetCents !== 'none';
    // What is held is compared only with a budget, so without one the store that admits requests is not asked.
    return { data, heldNanos: data.some(hasBudget) ? await this.held.of(tenantId) : {} };
  }

  /** RequestError invalid_parameter (limit, after). */
  async keys({
    tenantId,
    limit: asked,
    after = '',
  }: RequestOf<'billing.budget.keys'>): Promise<ReplyOf<'billing.budget.keys'>> {
    const limit = pageRows(asked);
    if (after !== '' && !isId('key', after)) throw new RequestError('invalid_parameter', 'after must be a key id.');
    const wanted = { tenantId, after, period: this.period(), limit: limit + 1 };
    const states = await budgetStates(this.dataSource.manager, wanted, this.thresholds());
    return toPage(states, limit, ({ keyId }) => keyId!);
  }

  /** The key's id, or '' for the tenant itself. RequestError not_found. */
  private async find({ tenantId, keyId }: SetRequest): Promise<string> {
    if (keyId === null) await this.services.request('auth.tenants.get', { tenantId });
    else await this.services.request('auth.keys.get', { tenantId, id: keyId });
    return keyId ?? '';
  }

  /**
   * Spending may already have reached thresholds of a lowered budget. They are recorded for this change. Thresholds
   * that an earlier change crossed, and that this budget has not reached, can be reached by spending again.
   */
  private async recordCrossed(
    tx: EntityManager,
    tenantId: string,
    { key_id: keyId, version }: BudgetRow,
  ): Promise<void> {
    const period = this.period();
    const watched = await query<WatchedRow>(
      tx,
      `SELECT b.tenant_id, $3::text AS period, b.key_id, coalesce(m.spent_nanos, 0) AS spent_nanos,
         ${IN_FORCE} AS cents, b.thresholds, coalesce(m.crossed, '{}') AS crossed
       FROM budget b LEFT JOIN budget_month m ON m.tenant_id = b.tenant_id AND m.key_id = b.key_id AND m.period = $3
       WHERE b.tenant_id = $1 AND b.key_id = $2 AND ${IN_FORCE} IS NOT NULL`,
      [tenantId, keyId, period],
    );
    await recordReached(tx, watched, this.thresholds(), version);
    await query(
      tx,
      `INSERT INTO budget_month AS m (tenant_id, period, key_id, spent_nanos, crossed) VALUES ($1, $3, $2, 0, $4)
       ON CONFLICT (tenant_id, period, key_id) DO UPDATE SET crossed = excluded.crossed
       WHERE m.crossed <> excluded.crossed`,
      [tenantId, keyId, period, watched.flatMap((row) => reachedBy(row, this.thresholds()))],
    );
  }

  private thresholds(): readonly number[] {
    return this.options.thresholdsPercent?.() ?? DEFAULT_THRESHOLDS_PERCENT;
  }

  private period(): string {
    return periodOf(this.options.now());
  }
}

/** The current row (none if the budget was never set), and whether it changed. Locks the tenant's books. */
async function write(
  tx: EntityManager,
  { tenantId, budgetCents, thresholdsPercent }: SetRequest,
  keyId: string,
  now: Date,
): Promise<{ row: BudgetRow | undefined; before: BudgetRow | undefined; changed: boolean }> {
  const [before] = await query<BudgetRow>(
    tx,
    'SELECT key_id, version, kind, cents, thresholds FROM budget WHERE tenant_id = $1 AND key_id = $2',
    [tenantId, keyId],
  );
  const thresholds = thresholdsPercent === undefined ? (before?.thresholds ?? null) : thresholdsPercent;
  const same =
    setBudget(before) === budgetCents && JSON.stringify(before?.thresholds ?? null) === JSON.stringify(thresholds);
  if (same) return { row: before, before, changed: false };
  if (!before && keyId !== '') await assertRoom(tx, tenantId);
  const kind = typeof budgetCents === 'number' ? 'amount' : budgetCents;
  const [row] = await query<BudgetRow>(
    tx,
    `INSERT INTO budget AS b (tenant_id, key_id, version, kind, cents, thresholds, changed_at)
     VALUES ($1, $2, 1, $3, $4, $5, $6)
     ON CONFLICT (tenant_id, key_id) DO UPDATE
       SET version = b.version + 1, kind = excluded.kind, cents = excluded.cents, thresholds = excluded.thresholds,
         changed_at = excluded.changed_at
     RETURNING key_id, version, kind, cents, thresholds`,
    [tenantId, keyId, kind, kind === 'amount' ? budgetCents : null, thresholds, now],
  );
  return { row, before, changed: true };
}

/** A budget in the audit log. */
const shown = (row: BudgetRow | undefined) => ({
  budgetCents: setBudget(row),
  thresholdsPercent: row?.thresholds ?? null,
});

async function assertRoom(tx: EntityManager, tenantId: string): Promise<void> {
  const [row] = await query<{ count: string }>(
    tx,
    `SELECT count(*) FROM budget WHERE tenant_id = $1 AND key_id <> ''`,
    [tenantId],
  );
  if (Number(row!.count) >= MAX_KEY_BUDGETS) throw new RequestError('too_many_budgets');
}

function assertSetRequest({ tenantId, keyId, budgetCents, thresholdsPercent }: SetRequest): void {
  if (!isId('ten', tenantId)) throw new RequestError('not_found', 'No such tenant.');
  if (keyId !== null && !isId('key', keyId)) throw new RequestError('not_found', 'No such key.');
  if (!isBudget(budgetCents)) throw new RequestError('invalid_budget');
  if (thresholdsPercent != null && !areThresholds(thresholdsPercent)) throw new RequestError('invalid_thresholds');
}

function isBudget(value: unknown): value is SetBudget {
  return value === 'none' || value === 'default' || (Number.isSafeInteger(value) && (value as number) >= 0);
}
