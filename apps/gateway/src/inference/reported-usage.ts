import type { InferenceKind } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import type { OwnCount } from '../prompt/prompt-estimate';

/** Above the band: ends of sequences, templates, the syntax of a tool call. */
const SPARE_TOKENS = 16;
/** Below it: half of three words is one. What nobody sees makes a report larger, never smaller. */
const SPARE_TOKENS_BELOW = 2;
/**
 * … of a chat's prompt, upwards: what its hold allows for too (prompt/prompt-bound.ts), as templates write that much
 * around a message, and once.
 */
const SPARE_CHAT_TOKENS = 64;
const SPARE_TOKENS_PER_MESSAGE = 8;
/**
 * By as much the estimate may be off without a wrong answer: a report is believed uncounted only where the band is
 * still kept then.
 */
const ESTIMATE_FACTOR = 1.4;

/** How far above the band a completion may be, and a prompt. */
export const OUTPUT_SPARE_TOKENS = SPARE_TOKENS;
export function promptSpareTokens(kind: InferenceKind, messages: number): number {
  return kind === 'chat' ? SPARE_CHAT_TOKENS + messages * SPARE_TOKENS_PER_MESSAGE : SPARE_TOKENS;
}

/**
 * Whether a backend's count can be true, by ours: within the model's band, as its tokenizer need not be the one that we
 * count with. Nobody generates or reads something with no tokens.
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

/** The same by an estimate, well inside the band: then nothing need be counted (55 ns a byte). */
export function isLikely(reported: number, own: OwnCount, { min, max }: CatalogModel['usageBand']): boolean {
  const isAbove = reported > 0 && reported >= own.least * min * ESTIMATE_FACTOR;
  return isAbove && reported * ESTIMATE_FACTOR <= own.most * max;
}

/** What a report may be believed in, by what it is held against. */
export interface Evidence {
  /** Without counting; null where no estimate is to be trusted. */
  estimate: OwnCount | null;
  /** By the model's tokenizer. */
  exact: () => OwnCount;
  /** Tokens above the band. */
  spareAbove: number;
  /** No count can be above it: the bytes that were sent. */
  bound?: number;
}

/** Counts as little as is needed to tell. */
export function believes(reported: number, evidence: Evidence, model: CatalogModel): boolean {
  if (evidence.bound !== undefined && reported > evidence.bound) return false;
  if (evidence.estimate && isLikely(reported, evidence.estimate, model.usageBand)) return true;
  return isPossible(reported, evidence.exact(), model.usageBand, evidence.spareAbove);
}
