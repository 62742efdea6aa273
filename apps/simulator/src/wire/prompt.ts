import { isObject, type Body, type Text } from './request-fields';
import { RequestError } from './request-error';
import { mix } from '../generate/random';
import { measure } from '../generate/tokenizer';

/**
 * OpenAI's count: each message costs three tokens besides its role and content, a name costs one more, and the opening
 * of the answer costs three.
 */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const TOKENS_TO_OPEN_ANSWER = 3;
/** The cost of an image, a sound or a file of any size. */
const TOKENS_PER_MEDIA_PART = 85;

/** Counts the messages and the declared tools as a chat prompt. The hash covers only the messages. */
export function readChatPrompt(body: Body): Text & { lastRole: unknown } {
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0)
    throw new RequestError(400, 'messages must be a non-empty array', 'messages', 'invalid_type');
  let tokens = TOKENS_TO_OPEN_ANSWER;
  let hash = messages.length;
  let lastRole: unknown;
  const add = (text: string): void => {
    const measured = measure(text);
    tokens += measured.tokens;
    hash = mix(hash, measured.hash);
  };
  for (const message of messages as unknown[]) {
    if (!isObject(message) || typeof message['role'] !== 'string')
      throw new RequestError(400, 'every message needs a role', 'messages', 'invalid_type');
    lastRole = message['role'];
    tokens += TOKENS_PER_MESSAGE;
    add(message['role']);
    if (typeof message['name'] === 'string') {
      tokens += TOKENS_PER_NAME;
      add(message['name']);
    }
    for (const text of contentTexts(message['content'])) {
      if (text === null) tokens += TOKENS_PER_MEDIA_PART;
      else add(text);
    }
    if (Array.isArray(message['tool_calls'])) add(JSON.stringify(message['tool_calls']));
  }
  if (Array.isArray(body['tools'])) tokens += measure(JSON.stringify(body['tools'])).tokens;
  return { tokens, hash, lastRole };
}

/** The texts of a content, with null for each part that is not text. */
function contentTexts(content: unknown): (string | null)[] {
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content))
    throw new RequestError(400, 'content must be a string or an array of parts', 'messages', 'invalid_type');
  return content.map((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : null));
}
