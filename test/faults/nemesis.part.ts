import type { ComposedDeployment } from '../e2e/composed';
import type { Clocks } from './nemesis/clocks';
import type { Control } from './nemesis/control';
import { planOf } from './nemesis/plan';
import { planText, roundText } from './nemesis/report';
import { playRound, type RoundResult } from './nemesis/round';

/** Fixed, so that CI always plays the same rounds. `npm run nemesis` plays others. */
const CI_SEED = 21;
const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? CI_SEED);
const PAIRS = 6;
const LEAST_PAIRS = 5;
/** No further pair begins after this time. */
const BOX_MS = 240_000;
/** Only for a hang. A round gives up by itself after some minutes. */
const TIMEOUT_MS = 1_800_000;

/** Two faults at once, by the plan of a seed. */
export function nemesisTests(tollgate: ComposedDeployment, clocks: Clocks, control: () => Control): void {
  it(
    'two faults at once lose, double and overdraw nothing, and no client waits long',
    async () => {
      const planned = planOf(SEED, PAIRS, { triples: false });
      process.stderr.write(`\nNemesis (TOLLGATE_TEST_SEED=${SEED}):\n${planText(planned)}\n`);
      const results: RoundResult[] = [];
      const untilMs = Date.now() + BOX_MS;
      for (const round of planned) {
        if (results.length >= LEAST_PAIRS && Date.now() >= untilMs) break;
        const result = await playRound(tollgate, clocks, control(), round);
        process.stderr.write(`${roundText(result)}\n`);
        results.push(result);
      }
      process.stderr.write(`Seed ${SEED}: ${results.length} of ${PAIRS} pairs in the time\n\n`);
      expect(results.flatMap(({ findings }) => findings)).toEqual([]);
    },
    TIMEOUT_MS,
  );
}
