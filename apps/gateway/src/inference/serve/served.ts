import type { UsageEvent } from '@tollgate/contracts';
import type { InferenceError } from '../../inference-errors';
import type { UsageToSettle } from '../../settle/settlement';
import { type AnswerDetails, toUsageField } from '../../settle/usage-event';

/** The withheld bytes of an answer. */
export interface Ending {
  /**
   * The bytes that a repeat gets after those that the client has, also if the client left. A string has one character a
   * byte.
   */
  readonly bytes: string | Buffer;
  send(): void;
}

/** The withheld end of an answer. It is made once: a repeat gets the bytes that the client gets. */
export class WithheldEnd {
  private ending: Ending | null = null;

  constructor(
    private readonly details: AnswerDetails,
    /** Makes it with the `usage` that the client gets. */
    private readonly make: (usage: Record<string, unknown>) => Ending,
  ) {}

  /** @param withCost its usage says what the request costs */
  of(event: UsageEvent, withCost: boolean): Ending {
    return (this.ending ??= this.make(toUsageField(event, this.details, withCost)));
  }
}

/** The result of serving a request. */
export type Served =
  /** Output was delivered or is ready. The caller settles the request, then sends its end with the settled usage. */
  | (UsageToSettle & { kind: 'delivered'; end: WithheldEnd })
  /** Nothing was delivered: the hold is void. `error` is the client's answer, or null if the client has left. */
  | { kind: 'nothing'; error: InferenceError | null };
