/**
 * JSON of any value that came as JSON, also one that is nested too deep to be written (JSON.parse reads deeper than
 * JSON.stringify writes): then what is nested in it is left out, and said to be. `undefined` for what JSON cannot say.
 */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const isNested = (one: unknown) => typeof one === 'object' && one !== null;
    return JSON.stringify(value, (key, one: unknown) => (key !== '' && isNested(one) ? 'nested too deep' : one));
  }
}
