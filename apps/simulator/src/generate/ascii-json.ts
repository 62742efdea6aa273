const BEYOND_ASCII = /[^\x00-\x7e]/g;

/** JSON in ASCII, so that its length is also its length in bytes, and each of its tokens is text. */
export function asciiJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.replace(BEYOND_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
