import { NANOS_PER_CENT, type BudgetUpdate, type BudgetState, type SetBudget } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';

export interface BudgetRow {
  key_id: string;
  version: string;
  kind: 'amount' | 'none' | 'default';
  cents: string | null;
  thresholds: number[] | null;
}

interface StateRow {
  key_id: string;
  kind: BudgetRow['kind'] | null;
  cents: string | null;
  thresholds: number[] | null;
  spent_nanos: string | null;
  events: BudgetState['events'] | null;
}

/** The budget that was set, from a `budget` row or from none. */
export function setBudget(row: { kind: BudgetRow['kind'] | null; cents: string | null } | undefined): SetBudget {
  if (!row?.kind || row.kind === 'default') return 'default';
  return row.kind === 'none' ? 'none' : Number(row.cents);
}

/** A budget as admission receives it. */
export function budgetUpdate(row: BudgetRow): BudgetUpdate {
  const set = setBudget(row);
  return {
    keyId: row.key_id || null,
    version: row.version,
    budgetNanos: typeof set === 'number' ? String(BigInt(set) * NANOS_PER_CENT) : set,
  };
}

/** Every budget that was ever set for the tenant or one of its keys, for an admission store that lost them. */
export async function allBudgetUpdates(tx: EntityManager, tenantId: string): Promise<BudgetUpdate[]> {
  const rows = await query<BudgetRow>(
    tx,
    'SELECT key_id, version, kind, cents, thresholds FROM budget WHERE tenant_id = $1 ORDER BY key_id',
    [tenantId],
  );
  return rows.map(budgetUpdate);
}

const STATE = `
  SELECT w.key_id, b.kind, b.cents, b.thresholds, m.spent_nanos,
    (SELECT json_agg(json_build_object('thresholdPercent', e.threshold_percent, 'budgetCents', e.budget_cents,
        'at', to_char(e.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY e.id)
      FROM budget_event e WHERE e.tenant_id = $1 AND e.period = $2 AND e.key_id = w.key_id) AS events
  FROM w
    LEFT JOIN budget b ON b.tenant_id = $1 AND b.key_id = w.key_id
    LEFT JOIN budget_month m ON m.tenant_id = $1 AND m.period = $2 AND m.key_id = w.key_id
  ORDER BY w.key_id`;

/** One budget, of the tenant (key '') or of a key, even if it was never set. */
export async function budgetState(
  tx: EntityManager,
  { tenantId, keyId, period }: { tenantId: string; keyId: string; period: string },
  defaultThresholds: readonly number[],
): Promise<BudgetState> {
  const [state] = await budgetStatesOf(tx, { tenantId, keyIds: [keyId], period }, defaultThresholds);
  return state!;
}

/** The budgets of some keys, even if they were never set, ascending. */
export async function budgetStatesOf(
  tx: EntityManager,
  { tenantId, keyIds, period }: { tenantId: string; keyIds: readonly string[]; period: string },
  defaultThresholds: readonly number[],
): Promise<BudgetState[]> {
  const rows = await query<StateRow>(
    tx,
    `WITH w AS (SELECT DISTINCT key_id FROM unnest($3::text[]) AS key_id) ${STATE}`,
    [tenantId, period, keyIds],
  );
  return rows.map((row) => toState(row, period, defaultThresholds));
}

/** The keys with a budget of their own, ascending, after the key `after`, at most `limit`. */
export async function budgetStates(
  tx: EntityManager,
  { tenantId, after, period, limit }: { tenantId: string; after: string; period: string; limit: number },
  defaultThresholds: readonly number[],
): Promise<BudgetState[]> {
  const rows = await query<StateRow>(
    tx,
    `WITH w AS (
       SELECT key_id
       FROM budget
       WHERE tenant_id = $1 AND key_id > $3 AND kind <> 'default'
       ORDER BY key_id
       LIMIT $4
     ) ${STATE}`,
    [tenantId, period, after, limit],
  );
  return rows.map((row) => toState(row, period, defaultThresholds));
}

function toState(row: StateRow, period: string, defaultThresholds: readonly number[]): BudgetState {
  return {
    keyId: row.key_id || null,
    budgetCents: setBudget(row),
    thresholdsPercent: row.thresholds ?? [...defaultThresholds],
    hasOwnThresholds: row.thresholds !== null,
    period,
    spentNanos: row.spent_nanos ?? '0',
    events: row.events ?? [],
  };
}
