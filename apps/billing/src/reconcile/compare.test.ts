import type { Snapshot } from '@tollgate/admission';
import { compareTenant, NO_BOOKS, PENDING_SUM, SETTLED_SUM, type Head, type TenantView } from './compare';

const head = (version: number): Head => ({
  version: BigInt(version),
  balanceNanos: 1_000n - BigInt(version) * 10n,
  suspended: false,
});

const snapshot = (of: Head, more: Partial<Snapshot> = {}): Snapshot => ({
  tenantId: 'ten_a',
  version: of.version,
  balanceNanos: of.balanceNanos,
  settledNanos: 30n,
  pendingNanos: 0n,
  pendingHolds: 0,
  settledHolds: 3,
  holdRowsPendingNanos: 0n,
  holdRowsSettledNanos: 30n,
  oldestSettledId: null,
  suspended: false,
  inFlight: 0n,
  withdrawnNanos: 0n,
  ...more,
});

const checks = (view: Partial<TenantView>) =>
  compareTenant({
    tenantId: 'ten_a',
    before: head(5),
    after: head(5),
    snapshot: snapshot(head(5)),
    asksForTenants: false,
    strayHolds: [],
    ...view,
  }).map((difference) => difference.check);

describe('the comparison of a tenant', () => {
  it('accepts stores that agree', () => expect(checks({})).toEqual([]));
  it('accepts a balance update that arrived while the stores were read', () => {
    for (const version of [5, 6, 8]) expect(checks({ after: head(8), snapshot: snapshot(head(version)) })).toEqual([]);
  });
  it.each([1n, -1n])('accepts a balance, or a debt, that is more than the store can hold (%p)', (sign) => {
    const far = { ...head(5), balanceNanos: sign * 10n ** 19n };
    const kept = snapshot(far, { balanceNanos: sign * 4n * 10n ** 18n });
    expect(checks({ before: far, after: far, snapshot: kept })).toEqual([]);
  });
  it('accepts a tenant that never had books', () =>
    expect(checks({ before: NO_BOOKS, after: NO_BOOKS, snapshot: undefined })).toEqual([]));
  it('accepts a tenant for which an emptied store will ask', () =>
    expect(checks({ snapshot: undefined, asksForTenants: true })).toEqual([]));
  it('reports a store that missed a balance update, or has one that never existed', () => {
    const check = 'the admission store has the balance update of the books';
    expect(checks({ snapshot: snapshot(head(4)) })).toEqual([check]);
    expect(checks({ snapshot: snapshot(head(6)) })).toEqual([check]);
  });
  it('reports another balance for the same version', () =>
    expect(checks({ snapshot: snapshot(head(5), { balanceNanos: 1n }) })).toEqual([
      'balance = balance of the admission store',
    ]));
  it('reports another suspension for the same version', () =>
    expect(checks({ snapshot: snapshot(head(5), { suspended: true }) })).toEqual([
      'a suspended tenant is suspended in the admission store',
    ]));
  it('reports books that do not have the status of auth, and accepts one that was taken in meanwhile', () => {
    const check = 'the books suspend those tenants that auth suspends';
    const suspended = { ...head(6), suspended: true };
    expect(checks({ suspendedByAuth: false })).toEqual([]);
    expect(checks({ suspendedByAuth: true })).toEqual([check]);
    expect(checks({ suspendedByAuth: true, snapshot: undefined, asksForTenants: true })).toEqual([check]);
    for (const suspendedByAuth of [true, false]) expect(checks({ after: suspended, suspendedByAuth })).toEqual([]);
  });
  it('reports running sums that are not those of the holds', () => {
    expect(checks({ snapshot: snapshot(head(5), { settledNanos: 1n }) })).toEqual([SETTLED_SUM]);
    expect(checks({ snapshot: snapshot(head(5), { pendingNanos: 1n }) })).toEqual([PENDING_SUM]);
  });
  it('reports a store that lost the tenant', () =>
    expect(checks({ snapshot: undefined })).toEqual(['the admission store knows the tenant']));
  it('reports a store that lost all of the tenant except its holds, whether it asks for tenants or not', () => {
    for (const asksForTenants of [true, false])
      expect(checks({ snapshot: undefined, asksForTenants, strayHolds: ['req_a'] })).toEqual([
        'the admission store knows the tenant',
      ]);
  });
});
