import { MAX_STOP_SEQUENCES } from '@tollgate/contracts';
import type { BodyRules } from './rules';

/** The rules of a model that accepts everything. */
export function bodyRules(more: Partial<BodyRules> = {}): BodyRules {
  return {
    id: 'm',
    kind: 'chat',
    contextTokens: 10_000_000,
    aliases: [],
    maxOutputTokens: 10_000_000,
    clamp: false,
    tools: true,
    jsonSchema: true,
    routing: 'load',
    tokenizer: 'o200k_base',
    templateTokensPerMessage: 3,
    templateTokens: 3,
    vocabularyTokens: null,
    dimensions: null,
    maxTokensPerImage: 85,
    maxTokensPerAudio: 85,
    maxTokensPerVideo: 85,
    maxTokensPerFile: 85,
    maxStopSequences: MAX_STOP_SEQUENCES,
    dottedNames: true,
    passthrough: new Set(),
    mediaUrls: false,
    ...more,
  };
}
