import type { BackendDialect } from './request-fields';

/** The stop sequences that every dialect takes: OpenAI's limit. */
export const COMMON_STOP_SEQUENCES = 4;
/** The most stop sequences of any request. Engines without a limit of their own search each token for all of them. */
export const MAX_STOP_SEQUENCES = 16;

/** What backends of a dialect take beyond what every dialect takes. */
export interface DialectBounds {
  /** The most stop sequences of a request. */
  stopSequences: number;
  /** Names of tools and functions may have dots. */
  dottedNames: boolean;
  /** Parts of these types may be sent, if the operator also names a maximum of tokens for them. */
  video: boolean;
  file: boolean;
}

const COMMON = { stopSequences: COMMON_STOP_SEQUENCES, dottedNames: false };
const ENGINE = { stopSequences: MAX_STOP_SEQUENCES, dottedNames: true };

/**
 * Each dialect as its server checks requests. The built-in simulator is as strict as OpenAI's API. An unknown dialect
 * (`any`) is assumed to take only media, because the operator names their maximum.
 */
export const DIALECT_BOUNDS: Readonly<Record<BackendDialect, DialectBounds>> = {
  any: { ...COMMON, video: true, file: true },
  openai: { ...COMMON, video: false, file: true },
  vllm: { ...ENGINE, video: true, file: false },
  llamacpp: { ...ENGINE, video: false, file: false },
  ollama: { ...ENGINE, video: false, file: false },
  sglang: { ...ENGINE, video: true, file: false },
  tgi: { ...COMMON, video: false, file: false },
  simulator: { ...COMMON, video: true, file: true },
};

/** What all of these dialects take: any of a model's backends may get a request. */
export function commonBounds(dialects: readonly BackendDialect[]): DialectBounds {
  const bounds = dialects.map((dialect) => DIALECT_BOUNDS[dialect]);
  return {
    stopSequences: Math.min(...bounds.map(({ stopSequences }) => stopSequences)),
    dottedNames: bounds.every(({ dottedNames }) => dottedNames),
    video: bounds.every(({ video }) => video),
    file: bounds.every(({ file }) => file),
  };
}
