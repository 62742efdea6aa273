import type { FaultPlan } from '../config/fault-rules';

/** What an answer says it used: the real numbers, unless a fault has it otherwise. */
export interface UsageReport {
  promptTokens: number;
  /** Null for embeddings, which have none. */
  completionTokens: number | null;
  /** Configured, or null: not reported. */
  cachedTokens: number | null;
}

/** `usage` as JSON; null when a fault leaves it out. */
export function usageJson(
  { promptTokens, completionTokens, cachedTokens }: UsageReport,
  faults: FaultPlan,
): string | null {
  if (faults.missingUsage) return null;
  const inflate = (tokens: number) => (faults.usageFactor === 1 ? tokens : Math.ceil(tokens * faults.usageFactor));
  const prompt = inflate(promptTokens);
  const completion = inflate(completionTokens ?? 0);
  const ownCompletion = completionTokens === null ? '' : `"completion_tokens":${completion},`;
  const details =
    cachedTokens === null
      ? ''
      : `,"prompt_tokens_details":{"cached_tokens":${Math.min(cachedTokens, prompt)},"audio_tokens":0}`;
  return `{"prompt_tokens":${prompt},${ownCompletion}"total_tokens":${prompt + completion}${details}}`;
}
