import { InferenceError } from '../inference-errors';
import type { BodyRules } from './rules';
import type { CompletionRequest } from './schemas';

/**
 * The largest token id in the prompts, or null if there is none. Throws InferenceError for an id that the model does
 * not have: engines answer 500 to it, or crash. The schema bounds the ids of all models by 0 and 2^31 - 1.
 */
export function largestTokenId(
  param: 'prompt' | 'input',
  prompts: CompletionRequest['prompt'],
  model: Pick<BodyRules, 'id' | 'vocabularyTokens'>,
): number | null {
  if (typeof prompts === 'string') return null;
  let largest = largestIn(param, prompts, model);
  for (const [i, prompt] of prompts.entries())
    if (Array.isArray(prompt)) largest = Math.max(largest, largestIn(`${param}[${i}]`, prompt, model));
  return largest === NONE ? null : largest;
}

/** Below all ids. */
const NONE = -1;

function largestIn(
  at: string,
  items: readonly unknown[],
  { id, vocabularyTokens }: Pick<BodyRules, 'id' | 'vocabularyTokens'>,
): number {
  const end = vocabularyTokens ?? Infinity;
  let largest = NONE;
  for (const [i, item] of items.entries()) {
    if (typeof item !== 'number') continue;
    if (item >= end) {
      const param = `${at}[${i}]`;
      const message = `'${param}' must be a token id below ${end} for the model '${id}'.`;
      throw new InferenceError('invalid_value', { param, message });
    }
    if (item > largest) largest = item;
  }
  return largest;
}

interface WithTokenIds {
  largestTokenId: number | null;
}

/** Whether a model surely lacks a token id of the request. */
export function lacksToken(
  { largestTokenId: largest }: WithTokenIds,
  { vocabularyTokens }: Pick<BodyRules, 'vocabularyTokens'>,
): boolean {
  return largest !== null && vocabularyTokens !== null && largest >= vocabularyTokens;
}

/** Whether a model may lack a token id of the request, because its vocabulary is not known. */
export function mayLackToken(
  { largestTokenId: largest }: WithTokenIds,
  { vocabularyTokens }: Pick<BodyRules, 'vocabularyTokens'>,
): boolean {
  return largest !== null && vocabularyTokens === null;
}
