import type { UsageEvent } from '@tollgate/contracts';
import type { BackendWork } from './unbilled-reports';
import type { HeldRequest } from './held-request';

/** The most tokens per choice that a backend generates beyond those we read: until it stops, and in transit. */
const STOP_SLACK_TOKENS = 64;

/**
 * The most work that backends may have done for a request beyond its charge; only the backends know the exact amount.
 * `charged` is null when nothing was charged. A slow client that leaves may leave more unread output than the slack.
 * That work is not charged either, so the reports must include it.
 */
export function unbilledWork(
  { begun, hold, request, draft }: HeldRequest,
  charged: Pick<UsageEvent, 'promptTokens' | 'completionTokens' | 'outcome'> | null,
): { sinceMs: number; work: BackendWork[] } {
  // An engine processes the prompt again for each choice, but reports it once.
  const prompts = Math.max(1, request.choices);
  const outputTokens = hold.maxTokensPerChoice * request.choices;
  const work = begun.map((backend) => ({
    backend,
    promptTokens: hold.prompt.upperBound * prompts,
    completionTokens: outputTokens,
  }));
  const served = charged && work.at(-1);
  if (charged && served) {
    const rest = Math.max(0, outputTokens - charged.completionTokens);
    served.promptTokens = (prompts - 1) * charged.promptTokens;
    served.completionTokens = charged.outcome === 'complete' ? 0 : Math.min(rest, STOP_SLACK_TOKENS * prompts);
  }
  return { sinceMs: Date.parse(draft.startedAt), work };
}
