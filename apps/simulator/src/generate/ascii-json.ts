const BEYOND_ASCII = /[^\x00-\x7e]/g;

/** JSON in ASCII alone, so that its length in bytes is its length, and every token of it is text. */
export function asciiJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.replace(BEYOND_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
