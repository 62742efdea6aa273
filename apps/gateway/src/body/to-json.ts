/** Half of a surrogate pair as JSON.stringify writes it, after an even number of backslashes. */
const HALF_PAIR = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/**
 * JSON that every parser accepts. Clients that cut a text within an emoji send half of a surrogate pair, which becomes
 * U+FFFD: in UTF-8 it has no other form, and our tokenizer counts it so. llama.cpp answers 500 to it.
 */
export function toJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes('\\ud') ? json.replace(HALF_PAIR, '$1\ufffd') : json;
}
