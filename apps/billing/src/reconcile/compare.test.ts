import type { Snapshot } from '@tollgate/admission';
import { compareTenant, type Head, type TenantView } from './compare';

const head = (charges: number, version = charges): Head => ({
  version: BigInt(version),
  balanceNanos: 1_000n - BigInt(charges) * 10n,
  charges: BigInt(charges),
  chargesNanos: BigInt(charges) * 10n,
});

const snapshot = (of: Head, settled = 0, more: Partial<Snapshot> = {}): Snapshot => ({
  tenantId: 'ten_a',
  version: of.version,
  balanceNanos: of.balanceNanos,
  settledNanos: BigInt(settled) * 10n,
  pendingNanos: 0n,
  pendingHolds: 0,
  settledHolds: settled,
  holdRowsPendingNanos: 0n,
  holdRowsSettledNanos: BigInt(settled) * 10n,
  oldestSettledId: null,
  ...more,
});

const view = (fields: Partial<TenantView> & { count?: number; nanos?: bigint }): TenantView => {
  const { count = 5, nanos = BigInt(count) * 10n, ...rest } = fields;
  return {
    tenantId: 'ten_a',
    before: head(5),
    after: head(5),
    events: { events: BigInt(count), costNanos: nanos },
    snapshot: snapshot(head(5)),
    overdueHold: undefined,
    ...rest,
  };
};

const checks = (fields: Parameters<typeof view>[0]) =>
  compareTenant(view(fields)).map((difference) => difference.check);

describe('what is no difference', () => {
  it('stores that agree', () => expect(checks({})).toEqual([]));
  it('an event on its way to the books under its settled hold', () =>
    expect(checks({ count: 7, snapshot: snapshot(head(5), 2) })).toEqual([]));
  it('settled holds whose events are on their way to metering', () =>
    expect(checks({ snapshot: snapshot(head(5), 3) })).toEqual([]));
  it('charges gathered while the stores were read', () =>
    expect(checks({ count: 6, after: head(8), snapshot: snapshot(head(6)) })).toEqual([]));
  it('a balance that both count as more than the store can hold', () => {
    const rich = { ...head(5), balanceNanos: 10n ** 19n };
    expect(
      checks({ before: rich, after: rich, snapshot: snapshot(rich, 0, { balanceNanos: 4n * 10n ** 18n }) }),
    ).toEqual([]);
  });
  it('a tenant that has never had books', () =>
    expect(checks({ before: head(0), after: head(0), count: 0, snapshot: undefined })).toEqual([]));
});

describe('what is a difference', () => {
  const events = 'events = charges';
  it('an event without a charge or a hold', () => expect(checks({ count: 6 })).toEqual([events]));
  it('a charge without an event', () => expect(checks({ count: 4 })).toEqual([events]));
  it('the same number with another sum', () =>
    expect(checks({ count: 5, nanos: 51n, snapshot: snapshot(head(5), 1) })).toEqual([events]));
  it('more on its way than settled holds account for', () =>
    expect(checks({ count: 7, nanos: 71n, snapshot: snapshot(head(5), 2) })).toEqual([events]));
  it('a store that did not get the news, or has news that never was', () => {
    const check = 'the admission store has the news of the books';
    expect(checks({ snapshot: snapshot(head(5, 4)) })).toEqual([check]);
    expect(checks({ snapshot: snapshot(head(5, 6)) })).toEqual([check]);
  });
  it('another balance for the same version', () =>
    expect(checks({ snapshot: snapshot(head(5), 0, { balanceNanos: 1n }) })).toEqual([
      'balance = balance of the admission store',
    ]));
  it('running sums that are not those of the holds', () => {
    expect(checks({ snapshot: snapshot(head(5), 0, { settledNanos: 1n }) })).toEqual([
      'settled sum = sum of settled holds',
    ]);
    expect(checks({ snapshot: snapshot(head(5), 0, { pendingNanos: 1n }) })).toEqual([
      'pending sum = sum of pending holds',
    ]);
  });
  it('a store that has lost the tenant', () =>
    expect(checks({ snapshot: undefined })).toEqual(['the admission store knows the tenant']));
  it('a settled hold whose charge was gathered long ago', () =>
    expect(checks({ overdueHold: 'req_x' })).toEqual(['a hold is released once its charge is gathered']));
});
