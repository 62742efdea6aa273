import { MAX_TOKEN_COUNT, type TokenCounts } from '@tollgate/contracts';

/** The usage that a backend reports. Null: none. `unreadable`: numbers that no answer can have. */
export type ReportedUsage = TokenCounts | 'unreadable' | null;

/**
 * Parses a backend's `usage`. Its plausibility is checked later (inference/reported-usage.ts). A report is unreadable
 * if a count is not a whole number, is too large to be recorded, or if the total does not add up. Embeddings have no
 * completion tokens.
 */
export function readUsage(value: unknown): ReportedUsage {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'object') return 'unreadable';
  const usage = value as Record<string, unknown>;
  const promptTokens = usage['prompt_tokens'];
  const completionTokens = usage['completion_tokens'] ?? 0;
  if (!isCount(promptTokens) || !isCount(completionTokens)) return 'unreadable';
  const total = usage['total_tokens'];
  if (total !== undefined && total !== promptTokens + completionTokens) return 'unreadable';
  const details = usage['prompt_tokens_details'];
  const reported =
    typeof details === 'object' && details !== null ? (details as Record<string, unknown>)['cached_tokens'] : 0;
  const cachedTokens = isCount(reported) ? Math.min(reported, promptTokens) : 0;
  return { promptTokens, cachedTokens, completionTokens };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKEN_COUNT;
}
