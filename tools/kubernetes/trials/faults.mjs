// A load that suffers faults, beside the load of a customer with little credit, and what the books must say of both.
import { SetupError } from '../../setup/prepare.mjs';
import { noDeadLetters } from './dead-letters.mjs';
import { credit, customer, loadOf, proveBooks, served, underLoad, until } from './release.mjs';

/** The credit of one more customer, which gets it at each fault and spends it within seconds: four streams. */
const SCARCE_CENTS = 20;
const WITHOUT_CREDIT = /^(402|429) .*"(credit_exhausted|credit_held)"/s;
const SPENT_TIMEOUT_MS = 120_000;
const isRefused = ({ failure }) => failure !== null && WITHOUT_CREDIT.test(failure);

/**
 * Runs `play` under load. It inflicts each fault through `suffer`, which says what the load may see. Rejects as
 * `underLoad` does, and also if the books are wrong about a customer whose credit was used up at each fault, or if a
 * message was quarantined.
 * @param {(load: import('./load.mjs').Load, suffer: (
 *   fault: Omit<import('./load.mjs').Fault, 'sinceMs'>, inflict: () => Promise<void>) => Promise<void>
 * ) => Promise<object>} play
 */
export async function underFaults(release, play) {
  const scarce = await customer(release, SCARCE_CENTS);
  let few, fewServed;
  let cutStreams = 0;
  const figures = await underLoad(release, async (load) => {
    few = await loadOf(release, scarce, { plain: 1, streams: 2, mayBeRefused: WITHOUT_CREDIT });
    const suffer = async (fault, inflict) => {
      await credit(release, scarce, SCARCE_CENTS);
      for (const one of [load, few]) one.suffer(fault);
      await inflict();
      for (const one of [load, few]) one.suffer(null);
    };
    try {
      const played = await play(load, suffer);
      // On a slow machine the faults may end before the credit is spent.
      await until('A refusal for lack of credit', SPENT_TIMEOUT_MS, () => few.outcomes.some(isRefused));
      return played;
    } finally {
      fewServed = await few.stop();
      cutStreams = load.outcomes.filter((one) => one.failure !== null && one.arrivalsMs.length > 0).length;
    }
  });
  served(fewServed);
  const refused = few.outcomes.filter(isRefused).length;
  const answered = few.outcomes.filter(({ failure }) => failure === null).length;
  if (refused === 0 || answered === 0)
    throw new SetupError(`With little credit, ${answered} requests were served and ${refused} refused.`);
  await proveBooks(release, scarce, few.outcomes);
  await noDeadLetters(release);
  return { ...figures, cutStreams, scarce: { served: answered, refused } };
}
