import { MAX_TOKEN_COUNT, type TokenCounts } from '@tollgate/contracts';

/** The parts of a count by name, as a backend reports them: `cached_tokens`, `reasoning_tokens` and others. */
export type UsageDetails = Readonly<Record<string, number>>;

/** A backend's counts. The details are for the client only: what is charged are the counts. */
export type ReportedCounts = TokenCounts & { promptDetails?: UsageDetails; completionDetails?: UsageDetails };

/** The usage that a backend reports. Null: none. `unreadable`: numbers that no answer can have. */
export type ReportedUsage = ReportedCounts | 'unreadable' | null;

const DETAIL_NAME = /^[a-z][a-z0-9_]{0,63}$/;
/** More are not passed on: no honest report has more. */
const MAX_DETAILS = 16;

/**
 * Parses a backend's `usage`. Its plausibility is checked later (inference/reported-usage.ts). A report is unreadable
 * if a count is not a whole number, is too large to be recorded, or if the total is below the sum. A total above it
 * has output that is hidden: xAI and Gemini count reasoning there alone. Embeddings have no completion tokens. A member
 * that may be absent may also be null.
 */
export function readUsage(value: unknown): ReportedUsage {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'object') return 'unreadable';
  const usage = value as Record<string, unknown>;
  const promptTokens = usage['prompt_tokens'];
  const completion = usage['completion_tokens'] ?? 0;
  if (!isCount(promptTokens) || !isCount(completion)) return 'unreadable';
  const total = usage['total_tokens'] ?? promptTokens + completion;
  const completionTokens = isCount(total) ? total - promptTokens : -1;
  if (completionTokens < completion) return 'unreadable';
  const promptDetails = readDetails(usage['prompt_tokens_details'], promptTokens);
  const completionDetails = readDetails(usage['completion_tokens_details'], completionTokens);
  // Moonshot and DeepSeek report them beside the details.
  const cached = promptDetails?.['cached_tokens'] ?? usage['cached_tokens'] ?? usage['prompt_cache_hit_tokens'];
  const cachedTokens = isCount(cached) ? Math.min(cached, promptTokens) : 0;
  return {
    promptTokens,
    cachedTokens,
    completionTokens,
    ...(promptDetails && { promptDetails }),
    ...(completionDetails && { completionDetails }),
  };
}

/** The details that are counts, each at most the count of which it is a part. Undefined if there is none. */
function readDetails(value: unknown, whole: number): UsageDetails | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const details: Record<string, number> = {};
  let found = 0;
  for (const [name, count] of Object.entries(value)) {
    if (!isCount(count) || !DETAIL_NAME.test(name)) continue;
    if (++found > MAX_DETAILS) break;
    details[name] = Math.min(count, whole);
  }
  return found === 0 ? undefined : details;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKEN_COUNT;
}
