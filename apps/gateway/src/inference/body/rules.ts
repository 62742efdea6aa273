import type { CatalogModel } from '../../catalog/catalog';

/** What a model says of the requests that it takes: all that reading a body needs, so that a worker can be told it. */
export type BodyRules = Pick<
  CatalogModel,
  | 'id'
  | 'kind'
  | 'contextTokens'
  | 'maxOutputTokens'
  | 'tokenizer'
  | 'templateTokensPerMessage'
  | 'templateTokens'
  | 'maxTokensPerImage'
  | 'maxTokensPerAudio'
  | 'passthrough'
  | 'mediaUrls'
>;

/** Tokens of a prompt: of all its parts, and of the longest that must fit into the context by itself. */
export interface PromptTokens {
  total: number;
  longest: number;
}
