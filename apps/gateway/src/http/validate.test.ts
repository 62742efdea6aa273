import fc from 'fast-check';
import { parseInstant } from './validate';

const at = (text: string) => {
  const ms = parseInstant(text);
  return ms === null ? null : new Date(ms).toISOString();
};

describe('parseInstant', () => {
  it('reads dates as midnight UTC, and timestamps without an offset as UTC', () => {
    expect(at('2026-02-28')).toBe('2026-02-28T00:00:00.000Z');
    expect(at('2026-02-28T12:30')).toBe('2026-02-28T12:30:00.000Z');
    expect(at('2026-02-28t12:30:00.123456z')).toBe('2026-02-28T12:30:00.123Z');
    expect(at('2026-02-28T12:30:00-05:30')).toBe('2026-02-28T18:00:00.000Z');
  });

  it('refuses dates that do not exist, and instants outside the supported range or format', () => {
    const wrong = [
      '',
      'now',
      '2026',
      '2026-2-1',
      '2026-02-29',
      '2025-04-31',
      '2026-01-01T24:30:00Z',
      '2026-01-01T10:00:61Z',
    ];
    const outside = ['0000-01-01', '1969-12-31', '9999-12-31T23:59:59-12:00', '2026-01-01 10:00:00', '+012026-01-01'];
    for (const text of [...wrong, ...outside]) expect([text, at(text)]).toEqual([text, null]);
  });

  it('reads every instant that is written as ISO 8601', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
        (date) => {
          expect(parseInstant(date.toISOString())).toBe(date.getTime());
        },
      ),
    );
  });

  it('never throws', () => {
    fc.assert(fc.property(fc.string(), (text) => void parseInstant(text)));
  });
});
