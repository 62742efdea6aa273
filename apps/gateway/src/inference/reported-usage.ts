import type { InferenceKind } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import type { OwnCount } from '../prompt/prompt-estimate';
import type { ReportedCounts } from '../upstream/wire/usage-field';

/** Tolerance above the band, for ends of sequences, templates and the syntax of a tool call. */
const SPARE_TOKENS = 16;
/**
 * The same for each tool call. Engines take a call out of tags and JSON that the model wrote around its name and its
 * arguments: 10 to 15 tokens, of which nothing is delivered.
 */
const SPARE_TOKENS_PER_CALL = 16;
/**
 * Tolerance below the band, for rounding: half of three words is one. Invisible tokens make a report larger, never
 * smaller.
 */
const SPARE_TOKENS_BELOW = 2;
/**
 * Tolerance above the band for a chat's prompt: templates add this much once, and around each message. The hold has the
 * same allowance (prompt/prompt-bound.ts).
 */
const SPARE_CHAT_TOKENS = 64;
const SPARE_TOKENS_PER_MESSAGE = 8;
/** The error that an estimate may have. A report is believed uncounted only if it is within the band even then. */
const ESTIMATE_FACTOR = 1.4;

/**
 * The tolerance above the band for a completion and for a prompt.
 * @param choices each further one has its own end, which is one token
 */
export function outputSpareTokens(calls: number, choices: number): number {
  return SPARE_TOKENS + calls * SPARE_TOKENS_PER_CALL + Math.max(0, choices - 1);
}
export function promptSpareTokens(kind: InferenceKind, messages: number): number {
  return kind === 'chat' ? SPARE_CHAT_TOKENS + messages * SPARE_TOKENS_PER_MESSAGE : SPARE_TOKENS;
}

/**
 * Whether a backend's count is plausible: within the model's band around our own, as the backend may use another
 * tokenizer. Zero is plausible only if our count is zero.
 */
export function isPossible(
  reported: number,
  own: OwnCount,
  { min, max }: CatalogModel['usageBand'],
  spareAbove: number,
): boolean {
  if (reported === 0) return own.least === 0;
  return reported >= own.least * min - SPARE_TOKENS_BELOW && reported <= own.most * max + spareAbove;
}

/** The same for an estimate, well inside the band. Then nothing need be counted (55 ns a byte). */
export function isLikely(reported: number, own: OwnCount, { min, max }: CatalogModel['usageBand']): boolean {
  const isAbove = reported > 0 && reported >= own.least * min * ESTIMATE_FACTOR;
  return isAbove && reported * ESTIMATE_FACTOR <= own.most * max;
}

/**
 * Whether a completion above the band is explained by output that cannot be seen, and is within what was asked for:
 * reasoning that the backend names and hides, stop sequences, or tokens without text. Tokens without text are believed
 * only of an answer that went on to its limit, because only then the limit says how many there were.
 * @param asked the most tokens of all choices
 * @param ofStops the tokens of the longest stop sequence, once for each choice
 * @param wentToLimit the backend ended every choice that was asked for with `length`
 * @param spareAbove tolerance above the band for the output that is seen
 * @param reasons some reasoning is delivered, such as a summary. So what is seen is a part of the named reasoning too
 */
export function isHidden(
  { completionTokens, completionDetails }: ReportedCounts,
  own: number,
  {
    asked,
    wentToLimit,
    ofStops,
    spareAbove,
    reasons,
  }: Record<'asked' | 'ofStops' | 'spareAbove', number> & Record<'wentToLimit' | 'reasons', boolean>,
  band: CatalogModel['usageBand'],
): boolean {
  if (completionTokens > asked) return false;
  if (wentToLimit) return completionTokens >= own;
  const answer = completionTokens - (completionDetails?.['reasoning_tokens'] ?? 0);
  const seen = reasons ? Math.max(answer, Math.min(own, completionTokens)) : answer;
  return isPossible(seen, { least: own, most: own + ofStops }, band, spareAbove);
}

/** The evidence for or against a reported count. */
export interface Evidence {
  /** Made without counting. Null if it would be unreliable. */
  estimate: OwnCount | null;
  /** Counts with the model's tokenizer. */
  exact: () => OwnCount;
  /** Tolerance above the band, in tokens. */
  spareAbove: number;
  /** No true count is above it: the bytes that were sent. */
  bound?: number;
}

/** Whether to believe a reported count. Counts only if the estimate cannot decide. */
export function believes(reported: number, evidence: Evidence, model: CatalogModel): boolean {
  if (evidence.bound !== undefined && reported > evidence.bound) return false;
  if (evidence.estimate && isLikely(reported, evidence.estimate, model.usageBand)) return true;
  return isPossible(reported, evidence.exact(), model.usageBand, evidence.spareAbove);
}
