import type { InferenceKind } from '@tollgate/contracts';
import type { Identity } from '../upstream/wire/chunk-translator';

interface Wire {
  /** Appended to the backend's base path. */
  path: string;
  idPrefix: string;
  object: string;
  chunkObject: Identity['object'];
}

const CHAT = { object: 'chat.completion', chunkObject: 'chat.completion.chunk' } as const;
const TEXT = { object: 'text_completion', chunkObject: 'text_completion' } as const;

/** The wire names of each kind. Embeddings have no id and are not streamed. */
export const KINDS: Record<InferenceKind, Wire> = {
  chat: { path: '/chat/completions', idPrefix: 'chatcmpl-', ...CHAT },
  completion: { path: '/completions', idPrefix: 'cmpl-', ...TEXT },
  embedding: { path: '/embeddings', idPrefix: '', ...TEXT, object: 'list' },
};
