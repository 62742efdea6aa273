import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { commands } from './commands';
import { PureStores } from './pure-stores';
import { World } from './world';

const RUNS = 10_000;
const MAX_COMMANDS = 40;
const TIME_BOX_MS = 60_000;
const START_MS = Date.UTC(2026, 8, 20);

it(
  `${RUNS} histories of requests, money, crashes and disordered messages account for every nano exactly once`,
  async () => {
    await assertRuns(
      fc.asyncProperty(commands(MAX_COMMANDS), async (history) => {
        const stores = new PureStores();
        stores.clock.nowMs = START_MS;
        await new World(stores).run(history);
      }),
      { leastRuns: RUNS },
    );
  },
  TIME_BOX_MS,
);
