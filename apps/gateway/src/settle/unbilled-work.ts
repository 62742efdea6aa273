import type { UsageEvent } from '@tollgate/contracts';
import type { BackendWork } from './unbilled-reports';
import type { HeldRequest } from './held-request';

/**
 * A backend that is told to stop has generated so much more of each choice than was read of it, at the most: a moment's
 * work, and what was on the way.
 */
const STOP_SLACK_TOKENS = 64;

/**
 * What the backends may have worked on for a request beyond what it is charged, at the most: nobody but they know how
 * much of it they did. `charged` null: nothing was. A client that reads slowly and then leaves may leave more behind
 * than the slack: that is work which nobody pays for, and is to show.
 */
export function unbilledWork(
  { begun, hold, request, draft }: HeldRequest,
  charged: Pick<UsageEvent, 'promptTokens' | 'completionTokens' | 'outcome'> | null,
): { sinceMs: number; work: BackendWork[] } {
  // Engines read the prompt anew for each choice, and report it once.
  const prompts = Math.max(1, request.choices);
  const outputTokens = hold.maxTokensPerChoice * request.choices;
  const work = begun.map((backend) => ({
    backend,
    promptTokens: hold.promptTokens * prompts,
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
