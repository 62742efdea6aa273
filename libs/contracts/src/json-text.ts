/**
 * The JSON text of any parsed value. Values that are nested too deeply to be written are left out, and the text says so
 * (JSON.parse accepts deeper nesting than JSON.stringify). `undefined` if JSON cannot express the value.
 */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const isNested = (one: unknown) => typeof one === 'object' && one !== null;
    return JSON.stringify(value, (_, one: unknown) => (one !== value && isNested(one) ? 'nested too deep' : one));
  }
}
