import { newId, type Charge } from '@tollgate/contracts';
import fc from 'fast-check';
import { assertRuns, useTestDatabase } from '@tollgate/testing';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';

// Gathering, posting and topping up on real PostgreSQL, against a model that is one sum.
const database = useTestDatabase();
const PROPERTY_TIME_MS = 10_000;
const SEED = 20261121;

type Step =
  | { do: 'gather'; fresh: { tenant: number; nanos: bigint; month: string }[]; repeats: number[] }
  | { do: 'crash'; at: string; nanos: bigint }
  | { do: 'post'; replicas: number }
  | { do: 'topup'; tenant: number; cents: number; ref: number };

const nanos = fc.oneof(fc.bigInt(0n, CENT), fc.bigInt(0n, 50n * CENT), fc.constantFrom(0n, 1n, CENT - 1n, CENT));
const tenant = fc.integer({ min: 0, max: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('gather' as const),
      fresh: fc.array(fc.record({ tenant, nanos, month: fc.constantFrom('2026-10', '2026-11') }), { maxLength: 8 }),
      repeats: fc.array(fc.nat(), { maxLength: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      at: fc.constantFrom('charge', 'tenant_books', 'journal_entry', 'outbox'),
      nanos,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('post' as const), replicas: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('topup' as const),
      tenant,
      cents: fc.integer({ min: 1, max: 500 }),
      ref: fc.integer({ min: 0, max: 2 }),
    }),
  },
);

describe('any history', () => {
  const billing = useBilling(database);

  beforeAll(async () => {
    await database.query(crashFunction('nowhere'));
    for (const table of ['charge', 'tenant_books', 'journal_entry', 'outbox']) {
      await database.query(
        `CREATE TRIGGER zz_crash AFTER INSERT OR UPDATE ON billing.${table}
           FOR EACH ROW EXECUTE FUNCTION billing.crash()`,
      );
    }
  });

  it('of batches, repeats, crashes, top-ups and postings ends with every charge once, to the nano', async () => {
    await assertRuns(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 15 }), async (steps) => {
        const tenants = [newId('ten'), newId('ten'), newId('ten')];
        const charges: Charge[] = [];
        const topped = new Map<string, number>();
        for (const one of steps) await run(one, tenants, charges, topped);
        await expectBooksToProve(billing, charges);
        for (const tenantId of tenants) await expectModel(tenantId, charges, topped);
        await database.query('DELETE FROM billing.outbox');
      }),
      { seed: SEED, leastRuns: 50, mostRuns: 200, timeBoxMs: PROPERTY_TIME_MS, endOnFailure: true },
    );
  });

  async function run(step: Step, tenants: string[], charges: Charge[], topped: Map<string, number>): Promise<void> {
    if (step.do === 'post') {
      await Promise.all(Array.from({ length: step.replicas }, () => billing.poster.postDue()));
    } else if (step.do === 'topup') {
      const tenantId = tenants[step.tenant]!;
      const key = `${tenantId} ${step.ref}`;
      const adding = billing.topUps.add({ tenantId, amountCents: step.cents, source: 'manual', ref: String(step.ref) });
      const first = topped.get(key);
      if (first !== undefined && first !== step.cents)
        await expect(adding).rejects.toMatchObject({ code: 'ref_conflict' });
      else topped.set(key, Number((await adding).reply.entry.amountCents));
    } else if (step.do === 'crash') {
      await crashAt(step.at, async () => {
        const one = charge(tenants[0]!, step.nanos);
        const gathered = await billing.gatherer.gather([one]).then(
          () => charges.push(one),
          (error: unknown) => expect(String(error)).toMatch(/crash/),
        );
        await billing.poster.postDue().catch((error: unknown) => expect(String(error)).toMatch(/crash/));
        return gathered;
      });
    } else {
      const fresh = step.fresh.map(({ tenant, nanos, month }) =>
        charge(tenants[tenant]!, nanos, { endedAt: `${month}-15T00:00:00.000Z` }),
      );
      const repeats = charges.length === 0 ? [] : step.repeats.map((index) => charges[index % charges.length]!);
      charges.push(...fresh);
      await Promise.all([
        billing.gatherer.gather([...repeats, ...fresh]),
        billing.gatherer.gather([...fresh].reverse()),
      ]);
    }
  }

  /** While `work` runs, every write to `table` fails. */
  async function crashAt(table: string, work: () => Promise<unknown>): Promise<void> {
    await database.query(crashFunction(table));
    await work();
    await database.query(crashFunction('nowhere'));
  }

  async function expectModel(tenantId: string, charges: readonly Charge[], topped: Map<string, number>): Promise<void> {
    const cost = charges
      .filter((one) => one.tenantId === tenantId)
      .reduce((sum, one) => sum + BigInt(one.costNanos), 0n);
    const paid = [...topped]
      .filter(([key]) => key.startsWith(tenantId))
      .reduce((sum, [, cents]) => sum + BigInt(cents), 0n);
    const newest = (await billing.updates(tenantId)).sort((a, b) => Number(a.version) - Number(b.version)).at(-1);
    if (!newest) return;
    // At any time, the balance update says payments less usage.
    expect(newest.balanceNanos).toBe(String(paid * CENT - cost));
    const { balance } = await billing.books(tenantId);
    expect(balance).toBeGreaterThanOrEqual(0);
    expect(newest.version).toBe(String((await billing.books(tenantId)).version));
  }
});

function crashFunction(table: string): string {
  return `CREATE OR REPLACE FUNCTION billing.crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_TABLE_NAME = '${table}' THEN RAISE 'crash'; END IF; RETURN NULL; END $$`;
}
