import type { InferenceError } from '../inference-errors';
import type { Delivered } from '../settle/settlement';
import type { AnswerDetails } from '../settle/usage-event';

/** The withheld end of an answer. */
export interface Ending {
  /** One character a byte, if text. What a repeat gets behind what the client has, also if the client left. */
  readonly bytes: string | Buffer;
  send(): void;
}

/** The result of serving a request. */
export type Served =
  /**
   * Output was delivered or is ready. The caller settles the request, then sends its `ending` with the settled usage:
   * the withheld bytes.
   */
  | (Delivered & {
      kind: 'delivered';
      ending: (usage: Record<string, unknown>) => Ending;
      /** For the usage that `ending` gets. */
      details: AnswerDetails;
    })
  /** Nothing was delivered: the hold is void. `error` is the client's answer, or null if the client has left. */
  | { kind: 'nothing'; error: InferenceError | null };
