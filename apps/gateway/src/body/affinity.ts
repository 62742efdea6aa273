import type { InferenceKind } from '@tollgate/contracts';
import type { ChatCompletionRequest, CompletionRequest } from './schemas';

/**
 * The beginning of a prompt that is compared. Longer common beginnings go to one backend, shorter ones (a system prompt
 * that all requests share) spread with what follows them.
 */
const MAX_PREFIX_CHARS = 4_096;

/** How a model's requests are routed to its backends: by load alone, or related requests to the same backend. */
export type Routing = 'load' | 'prefix' | 'user';

/**
 * A number that is the same, on every replica, for requests that should go to the same backend. Null: any backend.
 * - `prefix`: of the prompt's beginning, to the end of the first message of the user. So all turns of a conversation
 *   get the same number, and so do requests that begin with the same long document.
 * - `user`: of the field `user`.
 */
export function affinityOf(kind: InferenceKind, body: Record<string, unknown>, routing: Routing): number | null {
  if (routing === 'load' || kind === 'embedding') return null;
  if (routing === 'user') return typeof body['user'] === 'string' && body['user'] !== '' ? hash(body['user']) : null;
  const prefix =
    kind === 'chat' ? prefixOfChat(body as ChatCompletionRequest) : prefixOfPrompt((body as CompletionRequest).prompt);
  return prefix === '' ? null : hash(prefix);
}

function prefixOfChat({ messages }: ChatCompletionRequest): string {
  let prefix = '';
  for (const { role, content } of messages) {
    prefix += `\n${role}\n`;
    if (typeof content === 'string') prefix += content.slice(0, MAX_PREFIX_CHARS);
    else if (Array.isArray(content)) {
      for (const { text } of content as { text?: string }[]) {
        if (typeof text === 'string') prefix += text.slice(0, MAX_PREFIX_CHARS);
        if (prefix.length >= MAX_PREFIX_CHARS) break;
      }
    }
    if (role === 'user' || prefix.length >= MAX_PREFIX_CHARS) break;
  }
  return prefix.slice(0, MAX_PREFIX_CHARS);
}

function prefixOfPrompt(prompt: CompletionRequest['prompt']): string {
  if (typeof prompt === 'string') return prompt.slice(0, MAX_PREFIX_CHARS);
  const [first] = prompt;
  if (typeof first === 'number') return prompt.slice(0, MAX_PREFIX_CHARS).join(' ').slice(0, MAX_PREFIX_CHARS);
  return typeof first === 'string'
    ? first.slice(0, MAX_PREFIX_CHARS)
    : (first ?? []).join(' ').slice(0, MAX_PREFIX_CHARS);
}

/** FNV-1a of the text's UTF-16 units, 32 bits. A caller that finds collisions only meets another backend. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  return state >>> 0;
}
