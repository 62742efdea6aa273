import type { UsageDraft } from './events';
import type { TokenCounts } from './money';

/**
 * What the hold of a running request knows of it. It has no limits, attempts or backend: they are written at its end.
 */
export interface RunningRequest extends Pick<UsageDraft, 'keyId' | 'kind' | 'stream' | 'startedAt'> {
  /** The model that serves, once that is recorded; before, the one that was asked for. */
  model: string;
  /** The `x-request-id` that its caller chose. Absent: it chose none. */
  callerRequestId?: string;
  /** What its last heartbeat recorded of a stream; `costNanos`: a decimal string. Null: no output until then. */
  delivered: (TokenCounts & { costNanos: string }) | null;
}
