import { newId, type BalanceUpdate } from '@tollgate/contracts';
import { parseBalanceUpdate, validateBalanceUpdate } from './balance-update';

const good = (): BalanceUpdate => ({
  tenantId: newId('ten'),
  version: '7',
  balanceNanos: '-5',
  releases: [newId('req')],
  suspended: false,
  budgets: [
    { keyId: null, version: '1', budgetNanos: 'none' },
    { keyId: newId('key'), version: '2', budgetNanos: '100' },
  ],
});

const BAD: [string, object][] = [
  ['tenantId', { tenantId: 'ten_x' }],
  // A different hash tag, and so other slots for its keys.
  ['tenantId', { tenantId: '}' }],
  ['version', { version: 7 }],
  ['version', { version: '-1' }],
  ['version', { version: '9223372036854775808' }],
  ['balanceNanos', { balanceNanos: '1e9' }],
  ['balanceNanos', { balanceNanos: '9'.repeat(31) }],
  ['suspended', { suspended: 'no' }],
  ['releases', { releases: undefined }],
  ['releases', { releases: [7] }],
  ['releases', { releases: ['a\0b'] }],
  // Redis cannot decode it.
  ['releases', { releases: ['a\ud800'] }],
  ['releases', { releases: ['a'.repeat(129)] }],
  ['budgets', { budgets: {} }],
  ['budgets', { budgets: [{ keyId: null, version: '1', budgetNanos: '-' }] }],
  ['budgets', { budgets: [null] }],
];

describe('the check of a balance update', () => {
  it('accepts the balance updates that billing publishes, with and without budgets', () => {
    const { budgets, ...rest } = good();
    expect([good(), rest].map(validateBalanceUpdate)).toEqual([null, null]);
    expect(parseBalanceUpdate({ ...rest, budgets: budgets! }).budgets).toMatchObject([
      { nanos: 'none' },
      { nanos: 100n },
    ]);
  });

  it.each(BAD)('names the %s that is wrong: %j', (field, change) => {
    expect(validateBalanceUpdate({ ...good(), ...change })).toMatch(`${field}: `);
  });

  it.each([null, 'text', 7])('refuses %j', (value) => expect(validateBalanceUpdate(value)).toMatch(/not an object/));
});
