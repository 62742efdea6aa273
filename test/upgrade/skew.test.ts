import { validateBalanceUpdate } from '@tollgate/admission';
import {
  ASKERS,
  newId,
  serviceOf,
  TOPICS,
  type RequestLife,
  type Service,
  type Subject,
  type Topic,
  type TopicTypes,
} from '@tollgate/contracts';
import { stampPrice } from '@tollgate/runtime';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCharge } from '../../apps/billing/src/gather/read-charge';
import { validateTenantUpdate } from '../../apps/billing/src/tenants/tenant-status';
import { validateUsageEvent } from '../../apps/metering/src/consume/read-usage-event';
import { open, seal } from '../../libs/messaging/src/envelope';
import type { TopicTypes as FormerTopics } from './former-version/contracts/topics';
import { ORDER } from './order';
import { Skew, type Break, type Direction } from './skew';

/** Breaks that matter only when the services are upgraded in another order, with what then fails. */
const IN_ANOTHER_ORDER: Readonly<Record<string, readonly Direction[]>> = {
  // A new gateway shows fields that a former auth or metering does not have: those answers lack them.
  'auth.tenants.create': ['former replies'],
  'auth.tenants.list': ['former replies'],
  'auth.tenants.setStatus': ['former replies'],
  'auth.keys.list': ['former replies'],
  'auth.keys.create': ['former replies'],
  'metering.usage.query': ['now asks', 'former replies'],
  'metering.usage.events': ['former replies'],
  // A former billing refuses a refund of `all`, does not say whether a booking is a repeat or what the balance was
  // after an entry, and ignores who asked for a run.
  'billing.credit.add': ['former replies'],
  'billing.credit.refund': ['now asks', 'former replies'],
  'billing.credit.adjust': ['now asks', 'former replies'],
  'billing.entry.requests': ['former replies'],
  'billing.reconcile.start': ['now asks'],
};
/** Breaks in the documented order, which do no harm. */
const HARMLESS: Readonly<Record<string, readonly Direction[]>> = {
  // A former gateway passes the status `closed` on as a text, and decides nothing by it.
  'auth.tenants.create': ['now replies'],
  'auth.tenants.list': ['now replies'],
  'auth.tenants.setStatus': ['now replies'],
  // Billing asks whether there is such a tenant or key, and reads no field of the answer but the status of a tenant.
  'auth.tenants.get': ['now replies', 'former replies'],
  'auth.keys.get': ['former replies'],
};

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const LIFE: Required<RequestLife> = {
  ...{ key: [1, 2, 3], tenant: [4, 5, 6], heldNanos: '9', endNanos: '10', extensions: 1, firstMs: 12 },
  ...{ failed: [{ backend: 'http://gpu/v1', why: 'failed', status: 500, code: 'ECONNRESET' }], asked: 'm', late: true },
};

/** Messages with all fields of the former version. The compiler asks for a field that is missing. */
const FORMER: { [T in Topic]: Required<FormerTopics[T]> } = {
  'usage-events': {
    ...{ id: newId('req'), tenantId: newId('ten'), keyId: newId('key'), model: 'm', kind: 'chat', stream: true },
    ...{ price: stampPrice({ input: '50', output: '200', request: '0' }, 'chat'), defaultBudgets: { keyCents: 5 } },
    ...{ startedAt: '2026-11-21T10:00:00.000Z', endedAt: '2026-11-21T10:00:01.000Z' },
    ...{ promptTokens: 9, cachedTokens: 1, completionTokens: 5, costNanos: '7', overrunNanos: '0' },
    ...{ estimated: false, outcome: 'complete', backend: 'http://gpu/v1' },
  },
  charges: {
    ...{ id: newId('req'), tenantId: newId('ten'), keyId: newId('key'), costNanos: '7', overrunNanos: '1' },
    ...{ endedAt: '2026-11-21T10:00:01.000Z', defaultBudgets: { tenantCents: 5 } },
  },
  'credit-news': {
    ...{ tenantId: newId('ten'), version: '3', balanceNanos: '-4', releases: [newId('req')], suspended: true },
    budgets: [{ keyId: null, version: '2', budgetNanos: '5' }],
  },
  'tenant-news': { tenantId: newId('ten'), version: 4, status: 'suspended' },
  'budget-events': {
    ...{ id: newId('evt'), tenantId: newId('ten'), keyId: null, period: '2026-11', thresholdPercent: 50 },
    ...{ budgetCents: 100, spentNanos: '500000000', at: '2026-11-21T10:00:00.000Z' },
  },
};
const reasonOf = (read: object): string | null => ('reason' in read ? String(read.reason) : null);
/** The checks of the consumers. No service consumes budget-events. */
const CHECKS: Record<Topic, (data: never) => string | null> = {
  'usage-events': validateUsageEvent,
  charges: (data) => reasonOf(readCharge(data)),
  'credit-news': validateBalanceUpdate,
  'tenant-news': validateTenantUpdate,
  'budget-events': () => null,
};
const topics = Object.keys(FORMER) as Topic[];

/** Messages with all fields of this version. The compiler asks for a field that is missing. */
const NOW: { [T in Topic]: Required<TopicTypes[T]> } = {
  'usage-events': {
    ...FORMER['usage-events'],
    ...{ callerRequestId: 'my-own-id-17', reasoningTokens: 2, traceparent: TRACEPARENT, life: LIFE },
  },
  charges: { ...FORMER.charges, traceparent: TRACEPARENT, late: true, dismissed: true },
  'credit-news': {
    ...FORMER['credit-news'],
    budgets: ['5', 'none', 'default'].map((budgetNanos) => ({ keyId: newId('key'), version: '2', budgetNanos })),
  },
  'tenant-news': FORMER['tenant-news'],
  'budget-events': FORMER['budget-events'],
};
/** The code with which consumers of the former version judge a message: tools/checks/former-contracts.mjs keeps it. */
const former = jest.requireActual<{
  validateUsageEvent(data: unknown): string | null;
  readCharge(data: unknown): object;
  validateBalanceUpdate(data: unknown): string | null;
  validateTenantUpdate(data: unknown): string | null;
}>('./former-version/checks.cjs');
const FORMER_CHECKS: Partial<Record<Topic, (data: unknown) => string | null>> = {
  'usage-events': former.validateUsageEvent,
  charges: (data) => reasonOf(former.readCharge(data)),
  'credit-news': former.validateBalanceUpdate,
  'tenant-news': former.validateTenantUpdate,
};
const formerlyChecked = Object.keys(FORMER_CHECKS) as Topic[];

describe('a service of this version beside services of the former one', () => {
  const skew = new Skew();
  const order: readonly Service[] = ORDER;
  const breaks = skew.breaks();
  const keyOf = ({ name, direction }: Pick<Break, 'name' | 'direction'>) => `${name}: ${direction}`;
  const allowed = (table: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(table).flatMap(([name, directions]) => directions.map((direction) => `${name}: ${direction}`));

  it('is compared with files that all name the commit of the former version', () => {
    const folder = join(__dirname, 'former-version');
    const kept = ['checks.cjs', ...readdirSync(join(folder, 'contracts')).map((name) => join('contracts', name))];
    expect(kept.length).toBeGreaterThan(2);
    const [first, ...others] = kept.map((name) => readFileSync(join(folder, name), 'utf8').split('\n', 1)[0]);
    expect(first).toMatch(/^\/\/ Of commit [0-9a-f]{40}\. /);
    expect([...new Set(others)]).toEqual([first]);
  });

  it('knows every topic and every request of the former version', () => {
    expect(skew.names.Subjects.was.length).toBeGreaterThan(40);
    for (const { was, now } of Object.values(skew.names)) expect(now).toEqual(expect.arrayContaining([...was]));
  });

  it('reads what they write, and they read what it writes, but for the named breaks', () => {
    const named = [...allowed(IN_ANOTHER_ORDER), ...allowed(HARMLESS)];
    const found = breaks.map(keyOf);
    expect(breaks.filter((one) => !named.includes(keyOf(one)))).toEqual([]);
    expect(named.filter((name) => !found.includes(name))).toEqual([]);
  });

  it('meets only harmless breaks while the services are upgraded in the documented order', () => {
    // The one that is upgraded first is of this version while the other one is of the former.
    const meets = (asker: Service, subject: Subject, direction: Direction): boolean => {
      const askerIsFirst = order.indexOf(asker) < order.indexOf(serviceOf(subject));
      return (direction === 'now asks' || direction === 'former replies') === askerIsFirst;
    };
    const met = breaks.filter(({ name, direction }) =>
      name in TOPICS
        ? true
        : ASKERS[name as Subject].some((asker) => order.includes(asker) && meets(asker, name as Subject, direction)),
    );
    expect(met.map(keyOf).sort()).toEqual(allowed(HARMLESS).sort());
  });

  it.each(topics)('consumes a former message of %s', (topic) => {
    // All former versions of the forms are 1.
    const message = { ...seal(TOPICS[topic], [FORMER[topic]])[0]!, v: 1 };
    const read = open(TOPICS[topic], JSON.parse(JSON.stringify(message)), (data) => CHECKS[topic](data as never));
    expect(read).toEqual({ data: FORMER[topic] });
  });

  it.each(formerlyChecked)('sends messages of %s that the consumers of the former version accept', (topic) => {
    const [message] = seal(TOPICS[topic], [NOW[topic]]);
    const { data } = JSON.parse(JSON.stringify(message)) as { data: Record<string, unknown> };
    const check = FORMER_CHECKS[topic]!;
    expect(check(data)).toBeNull();
    // It does judge: no message is accepted without its tenant.
    expect(check({ ...data, tenantId: undefined })).toMatch(/^tenantId\b/);
  });

  it.each(topics)('ignores a field of %s that only a later version knows', (topic) => {
    expect(CHECKS[topic]({ ...FORMER[topic], ofALaterVersion: [{ any: 'thing' }] } as never)).toBeNull();
  });
});
