import type { AdmissionStore, AskForCredit } from '@tollgate/admission';
import { assertRuns, type TestDatabase } from '@tollgate/testing';
import fc from 'fast-check';
import { commands } from './commands';
import { RealStores } from './real-stores';
import { World } from './world';

const RUNS = 200;
const MAX_COMMANDS = 25;
const TIMEOUT_MS = 600_000;
/** For thousands of calls in sequence. No test here is about a slow store. */
export const MODEL_CALL_MS = 60_000;
/**
 * Each run begins on the 20th of a month that no earlier run has used, because closed months stay closed and no event
 * may end in the future.
 */
const FIRST_START = Date.UTC(2000, 0, 20);

/** The histories of the pure model, played on the code of the services and on real stores. */
export function realStoresSuite(
  database: TestDatabase,
  openAdmission: (
    now: () => number,
    ask: AskForCredit,
  ) => Promise<{ admission: AdmissionStore; empty?: () => Promise<void> }>,
  mayBeEmptied = false,
): void {
  const clock = { nowMs: FIRST_START };
  let stores: RealStores;
  let admission: AdmissionStore;
  beforeAll(async () => {
    const opened = await openAdmission(
      () => clock.nowMs,
      (tenantId) => stores.ask(tenantId),
    );
    admission = opened.admission;
    stores = await RealStores.open(database, clock, opened);
  });
  afterAll(async () => {
    await stores.end();
    await admission.close();
  });

  it(
    `${RUNS} histories of requests, money, crashes and disordered messages account for every nano exactly once`,
    () =>
      assertRuns(
        fc.asyncProperty(commands(MAX_COMMANDS, mayBeEmptied), async (history) => {
          clock.nowMs = nextStart(clock.nowMs);
          await new World(stores).run(history);
        }),
        // No shrinking, because it takes minutes here. TOLLGATE_TEST_SEED repeats a failure.
        { leastRuns: RUNS, endOnFailure: true },
      ),
    TIMEOUT_MS,
  );
}

function nextStart(nowMs: number): number {
  const now = new Date(nowMs);
  const month = now.getUTCMonth() + (now.getUTCDate() < 20 ? 0 : 1);
  return Date.UTC(now.getUTCFullYear(), month, 20);
}
