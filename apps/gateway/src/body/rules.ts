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
  | 'vocabularyTokens'
  | 'dimensions'
  | 'maxTokensPerImage'
  | 'maxTokensPerAudio'
  | 'maxTokensPerVideo'
  | 'maxTokensPerFile'
  | 'maxStopSequences'
  | 'dottedNames'
  | 'passthrough'
  | 'mediaUrls'
>;

/** Our count of all prompts. */
export interface PromptTokens {
  total: number;
  /** Of the longest prompt, which must fit into the context by itself. */
  longest: number;
  /** The part of `total` that every engine shows the model: without schemas, for example. */
  least: number;
  /**
   * The most that engines may make of `total`: templates add texts for tools, and write JSON their own way; other
   * prompts get special tokens at their ends. Never charged.
   */
  most: number;
}
