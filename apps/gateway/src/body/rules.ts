import type { CatalogModel } from '../catalog/catalog';

/** A model's rules for request bodies: all that a worker needs to read one. */
export type BodyRules = Pick<
  CatalogModel,
  | 'id'
  | 'aliases'
  | 'kind'
  | 'contextTokens'
  | 'maxOutputTokens'
  | 'clamp'
  | 'tools'
  | 'jsonSchema'
  | 'routing'
  | 'tokenizer'
  | 'templateTokensPerMessage'
  | 'templateTokens'
  | 'maxTokensPerImage'
  | 'maxTokensPerAudio'
  | 'maxTokensPerVideo'
  | 'maxTokensPerFile'
  | 'maxStopSequences'
  | 'dottedNames'
  | 'passthrough'
  | 'mediaUrls'
>;

/** The tokens of all prompts, and of the longest one, which must fit into the context by itself. */
export interface PromptTokens {
  total: number;
  longest: number;
}
