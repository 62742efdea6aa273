import { PostgresAdmissionStore, type AdmissionStore } from '@tollgate/admission';
import type { BudgetEvent, BudgetState, Charge, SetBudget } from '@tollgate/contracts';
import { PATIENT_CALL_MS, type TestDatabase } from '@tollgate/testing';
import { ChargeGatherer } from '../gather/charge-gatherer';
import { CENT, charge, useBilling, type TestBilling } from '../testing/billing.fixture';
import { Budgets } from './budgets';
import { HeldByKey } from './held-by-key';

const MAY_MS = Date.UTC(2026, 4, 15, 12);
const THRESHOLDS_PERCENT = [50, 80, 100];

/** Budgets and spending, with a clock and thresholds that the test controls. Both are reset before each test. */
export class TestBudgets {
  nowMs = MAY_MS;
  configured: readonly number[] = THRESHOLDS_PERCENT;
  /** The replica of billing under test. `replica()` makes more. */
  gatherer!: ChargeGatherer;
  budgets!: Budgets;

  constructor(
    readonly billing: TestBilling,
    readonly admission: AdmissionStore,
    private readonly database: TestDatabase,
  ) {}

  reset(): void {
    this.nowMs = MAY_MS;
    this.configured = THRESHOLDS_PERCENT;
  }

  replica(admission = this.admission): { gatherer: ChargeGatherer; budgets: Budgets } {
    const { dataSource, messages } = this.billing;
    const thresholdsPercent = () => this.configured;
    return {
      gatherer: new ChargeGatherer(dataSource, { postingIntervalMs: 0, thresholdsPercent }),
      budgets: new Budgets(dataSource, messages, admission, new HeldByKey(admission), {
        thresholdsPercent,
        now: () => new Date(this.nowMs),
      }),
    };
  }

  at(): string {
    return new Date(this.nowMs).toISOString();
  }

  charge(tenantId: string, cents: number, more: Partial<Charge> = {}): Charge {
    return charge(tenantId, BigInt(cents) * CENT, { endedAt: this.at(), ...more });
  }

  async spend(tenantId: string, cents: number, more: Partial<Charge> = {}): Promise<void> {
    await this.gatherer.gather([this.charge(tenantId, cents, more)]);
  }

  set(
    tenantId: string,
    budgetCents: SetBudget,
    keyId: string | null = null,
    thresholdsPercent?: number[] | null,
  ): Promise<BudgetState> {
    return this.budgets.set({
      tenantId,
      keyId,
      budgetCents,
      ...(thresholdsPercent !== undefined && { thresholdsPercent }),
    });
  }

  /** The events for the topic, oldest first. */
  async events(tenantId: string): Promise<BudgetEvent[]> {
    const rows = await this.database.query<{ data: BudgetEvent }>(
      `SELECT data FROM billing.outbox WHERE topic = 'budget-events' AND data->>'tenantId' = $1 ORDER BY id`,
      [tenantId],
    );
    return rows.map((row) => row.data);
  }

  async percents(tenantId: string): Promise<number[]> {
    return (await this.events(tenantId)).map((event) => event.thresholdPercent);
  }
}

/** Call it inside a describe, so that it closes before the database is dropped. */
export function useBudgets(database: TestDatabase): TestBudgets {
  const billing = useBilling(database);
  const test = new TestBudgets(
    billing,
    new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS }),
    database,
  );
  beforeAll(() => void Object.assign(test, test.replica()));
  beforeEach(() => test.reset());
  afterAll(() => test.admission.close());
  return test;
}
