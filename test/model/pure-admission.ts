import type { ParsedBalanceUpdate } from '@tollgate/admission';
import { Model } from '../../libs/admission/src/suite/model.fixture';

/** The model of the admission store, with the withdrawals of refunds that the books do not have yet. */
export class PureAdmission extends Model {
  private readonly newest = new Map<string, ParsedBalanceUpdate>();
  private readonly withdrawn = new Map<string, Map<bigint, bigint>>();
  private told = 0n;

  override applyBalanceUpdates(update: ParsedBalanceUpdate): void {
    const { tenantId, version, releases } = update;
    if (version > (this.newest.get(tenantId)?.version ?? 0n)) {
      this.newest.set(tenantId, update);
      const withdrawn = this.withdrawn.get(tenantId);
      for (const of of withdrawn?.keys() ?? []) if (of <= version) withdrawn!.delete(of);
    }
    this.tell(tenantId, releases, update.budgets);
  }

  // rule 29: withdrawals
  withdraw(tenantId: string, version: bigint, nanos: bigint): boolean {
    if ((this.newest.get(tenantId)?.version ?? 0n) >= version) return false;
    const { balanceNanos, settledNanos, pendingNanos } = this.sums(tenantId);
    if (balanceNanos - settledNanos - pendingNanos < nanos) return false;
    const withdrawn = this.withdrawn.get(tenantId) ?? new Map<bigint, bigint>();
    this.withdrawn.set(tenantId, withdrawn.set(version, nanos));
    this.tell(tenantId, []);
    return true;
  }

  version(tenantId: string): bigint {
    return this.newest.get(tenantId)?.version ?? 0n;
  }

  private tell(tenantId: string, releases: readonly string[], budgets: ParsedBalanceUpdate['budgets'] = []): void {
    const { balanceNanos = 0n, suspended = false } = this.newest.get(tenantId) ?? {};
    const away = [...(this.withdrawn.get(tenantId)?.values() ?? [])].reduce((sum, nanos) => sum + nanos, 0n);
    const version = ++this.told;
    super.applyBalanceUpdates({ tenantId, version, balanceNanos: balanceNanos - away, releases, suspended, budgets });
  }
}
