/**
 * What many chat templates leave out of earlier answers: Qwen3 and DeepSeek show the model none of its former
 * reasoning. It is held, and need not be in a backend's count.
 */

/** Members of a message. */
export const OFTEN_LEFT_OUT: ReadonlySet<string> = new Set(['reasoning_content', 'reasoning', 'refusal']);

const END_OF_THOUGHT = '</think>';

/** The beginning of an earlier answer's text that is reasoning. Empty: there is none. */
export function thoughtIn({ role, content }: Record<string, unknown>): string {
  if (role !== 'assistant' || typeof content !== 'string') return '';
  const end = content.lastIndexOf(END_OF_THOUGHT);
  return end === -1 ? '' : content.slice(0, end + END_OF_THOUGHT.length);
}
