import type { AdmissionStore } from '@tollgate/admission';
import type { TestDatabase } from '@tollgate/testing';
import fc from 'fast-check';
import { commands, replay } from './commands';
import { RealStores } from './real-stores';
import { World } from './world';

const RUNS = 200;
const MAX_COMMANDS = 25;
const TIMEOUT_MS = 600_000;
/** Time moves on in each run, and no event may end in the future. */
const START_MS = Date.now() - 150 * 24 * 60 * 60 * 1_000;

/** The histories of the pure model, on the services' own code and real stores. */
export function realStoresSuite(
  database: TestDatabase,
  openAdmission: (now: () => number) => Promise<AdmissionStore>,
): void {
  const clock = { nowMs: START_MS };
  let stores: RealStores;
  let admission: AdmissionStore;
  beforeAll(async () => {
    admission = await openAdmission(() => clock.nowMs);
    stores = await RealStores.open(database, clock, admission);
  });
  afterAll(async () => {
    await stores.close();
    await admission.close();
  });

  it(
    `${RUNS} histories of requests, money, crashes and disordered messages end with every nano accounted for, once`,
    async () => {
      let runs = 0;
      await fc.assert(
        fc.asyncProperty(commands(MAX_COMMANDS), async (history) => {
          clock.nowMs = START_MS;
          await new World(stores).run(history);
          runs++;
        }),
        // A failure is told at once: shrinking takes minutes here, and TOLLGATE_TEST_SEED repeats it.
        { numRuns: RUNS, endOnFailure: true, ...replay },
      );
      if (replay.path === undefined) expect(runs).toBe(RUNS);
    },
    TIMEOUT_MS,
  );
}
