import type { FaultPlan } from '../config/fault-rules';

/** The usage that an answer reports, before faults change it. */
export interface UsageReport {
  promptTokens: number;
  /** Null for embeddings. */
  completionTokens: number | null;
  /** Not reported if null. */
  cachedTokens: number | null;
}

/** `usage` as JSON, or null if a fault removes it. */
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
