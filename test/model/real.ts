import type { AdmissionStore, AskForCredit } from '@tollgate/admission';
import { assertRuns, type TestDatabase } from '@tollgate/testing';
import fc from 'fast-check';
import { commands } from './commands';
import { RealStores } from './real-stores';
import { World } from './world';

const RUNS = 200;
const MAX_COMMANDS = 25;
const TIMEOUT_MS = 600_000;
/** Thousands of calls, one after the other, none of which is about a store that is slow. */
export const MODEL_CALL_MS = 60_000;
/**
 * Closed months stay closed, and no event may end in the future: each run begins on the 20th of a month that none
 * before it has seen.
 */
const FIRST_START = Date.UTC(2000, 0, 20);

/** The histories of the pure model, on the services' own code and real stores. */
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
    `${RUNS} histories of requests, money, crashes and disordered messages end with every nano accounted for, once`,
    () =>
      assertRuns(
        fc.asyncProperty(commands(MAX_COMMANDS, mayBeEmptied), async (history) => {
          clock.nowMs = nextStart(clock.nowMs);
          await new World(stores).run(history);
        }),
        // A failure is told at once: shrinking takes minutes here, and TOLLGATE_TEST_SEED repeats it.
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
