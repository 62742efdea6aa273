import { anyCharacter, assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { fromStringBody, fromWire, toStringBody, toWire } from './json-text';

const SEED = 20_261_123;
const plain = fc.string({ unit: 'binary-ascii', maxLength: 300 });
const anyText = fc.oneof(
  plain,
  fc.string({ unit: anyCharacter, maxLength: 300 }),
  fc.constantFrom('"', '\\', '\n', '\u007f', '\u0080', 'é', '😀', '\ud800', 'a'.repeat(300), `${'a'.repeat(300)}é`),
);

describe('JSON on the wire', () => {
  it('is the UTF-8 of the JSON, one character a byte, for any text', async () => {
    await assertRuns(
      fc.property(anyText, (text) => {
        const wire = Buffer.from(JSON.stringify(text), 'utf8').toString('latin1');
        expect(toWire(text)).toBe(wire);
        expect(toStringBody(text)).toBe(wire.slice(1, -1));
        expect(fromWire(wire)).toBe(text);
        expect(fromStringBody(wire.slice(1, -1))).toBe(text);
      }),
      { seed: SEED, leastRuns: 3_000 },
    );
  });

  it('is read from any bytes as Node decodes them', async () => {
    await assertRuns(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const body = Buffer.from(bytes).toString('latin1');
        const text = Buffer.from(bytes).toString('utf8');
        let expected = text;
        try {
          expected = JSON.parse(`"${text}"`) as string;
        } catch {
          // Not the body of a string.
        }
        expect(fromStringBody(body)).toBe(expected);
      }),
      { seed: SEED + 1, leastRuns: 3_000 },
    );
  });
});
