import type { AdmitRequest, AdmitResult } from '@tollgate/admission';
import { NANOS_PER_CENT, type BalanceUpdate } from '@tollgate/contracts';
import assert from 'node:assert/strict';
import type { Command } from './commands';
import type { Booking, SetBudget, Stores } from './stores';
import type { Truth } from './truth';

type Money = Extract<Command, { do: 'topUp' | 'refund' | 'adjust' }>;

/** An operator who books money in and out, suspends tenants and sets budgets. Keeps what must be in force. */
export class Operator {
  /** Amounts by tenant, kind and ref. */
  private readonly booked = new Map<string, number>();
  private readonly suspended = new Set<string>();
  private readonly budgets = new Map<string, SetBudget['cents']>();
  /** By tenant. Auth begins at 0, which is always an active tenant. */
  private readonly statusVersions = new Map<string, number>();

  constructor(
    private readonly stores: Stores,
    private readonly truth: Truth,
  ) {}

  async moveMoney(tenantId: string, command: Money): Promise<BalanceUpdate[]> {
    const { do: kind, ref } = command;
    const cents = kind === 'refund' ? -command.cents : command.cents;
    const allowDebt = kind === 'adjust' && command.allowDebt;
    const booking: Booking = { kind, cents, ref: `${kind} ${ref}`, allowDebt };
    const name = `${tenantId} ${booking.ref}`;
    const first = this.booked.get(name);
    const { updates, refused } = await this.stores.money(tenantId, booking);
    if (first !== undefined) assert.equal(refused, first !== cents, 'a repeated ref has the same amount or is refused');
    else if (cents > 0 || allowDebt) assert.equal(refused, false);
    if (refused || first !== undefined) return updates;
    this.booked.set(name, cents);
    this.truth.paid(tenantId, cents);
    if (cents < 0 && allowDebt) this.truth.owes(tenantId, -cents);
    return updates;
  }

  /** @param late an older message of auth about the tenant, which must change nothing. Its first is never late. */
  async suspend(tenantId: string, suspended: boolean, late: boolean): Promise<BalanceUpdate[]> {
    const known = this.statusVersions.get(tenantId) ?? 0;
    if (late && known > 0) return this.stores.status(tenantId, known - 1, suspended);
    this.statusVersions.set(tenantId, known + 1);
    const updates = await this.stores.status(tenantId, known + 1, suspended);
    if (suspended) this.suspended.add(tenantId);
    else this.suspended.delete(tenantId);
    return updates;
  }

  async setBudget(tenantId: string, budget: SetBudget): Promise<BalanceUpdate[]> {
    this.budgets.set(`${tenantId} ${budget.keyId}`, budget.cents);
    return this.stores.setBudget(tenantId, budget);
  }

  /** Asserts that a suspension is in force as soon as it is acknowledged. */
  mayAdmit({ draft }: AdmitRequest, result: AdmitResult): void {
    const refusedAsSuspended = result.kind === 'refused' && result.reason === 'tenant_suspended';
    const answer = result.kind === 'refused' ? result.reason : result.kind;
    const rule = `only a suspended tenant is refused as suspended: ${answer}`;
    assert.equal(refusedAsSuspended, this.suspended.has(draft.tenantId), rule);
  }

  /**
   * Asserts after a new or raised hold that spending and holds are within the budgets of the key and the tenant.
   * `heldNanos` returns the holds of a key, or of all keys for null.
   */
  isWithinBudgets(
    { draft: { tenantId, keyId }, keyBudgetNanos, tenantBudgetNanos }: AdmitRequest,
    heldNanos: (keyId: string | null) => bigint,
  ): void {
    const month = new Date(this.stores.clock.nowMs).toISOString().slice(0, 7);
    for (const [of, byDefault] of [
      [keyId, keyBudgetNanos],
      [null, tenantBudgetNanos],
    ] as const) {
      const budget = this.budgetNanos(tenantId, of, byDefault);
      if (budget === null) continue;
      const used = this.truth.spentNanos(tenantId, of, month) + heldNanos(of);
      assert(
        used <= budget + this.truth.mayExceedNanos(tenantId),
        `the budget ${budget} of ${of ?? 'the tenant'} is exceeded: ${used}`,
      );
    }
  }

  private budgetNanos(tenantId: string, keyId: string | null, byDefault: bigint | null): bigint | null {
    const set = this.budgets.get(`${tenantId} ${keyId}`) ?? 'default';
    if (set === 'default') return byDefault;
    return set === 'none' ? null : BigInt(set) * NANOS_PER_CENT;
  }
}
