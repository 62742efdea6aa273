import fc from 'fast-check';
import { parseInstant } from './instant';

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

  it('reads every form of an ISO 8601 date, and its time in the basic form', () => {
    const forms = {
      '2026-11-05': ['20261105', '2026-W45-4', '2026W454', '2026-309', '2026309', '2026-11-05T00', '2026-11-04T24:00'],
      '2026-11-01': ['2026-11'],
      '2026-11-02': ['2026-W45', '2026W45'],
      '2026-01-01': ['2026', '2026-001'],
      '2025-12-29': ['2026-W01', '2026-W01-1'],
      '2027-01-03': ['2026-W53-7'],
      '2024-12-31': ['2024-366'],
    };
    for (const [day, texts] of Object.entries(forms))
      for (const text of texts) expect([text, at(text)]).toEqual([text, `${day}T00:00:00.000Z`]);
    for (const text of ['20261105T083000Z', '2026-11-05T08:30', '2026-11-05T10:30+02', '20261105T0330-0500'])
      expect([text, at(text)]).toEqual([text, '2026-11-05T08:30:00.000Z']);
    expect(at('2026-11-05T08:30:00,5Z')).toBe('2026-11-05T08:30:00.500Z');
  });

  it('reads the space that a query string makes of an unescaped plus', () => {
    const query = new URLSearchParams('from=2026-11-05T10:30:00+02:00');
    expect(at(query.get('from')!)).toBe('2026-11-05T08:30:00.000Z');
  });

  it('refuses dates that do not exist, and instants outside the supported range or format', () => {
    const wrong = [
      '',
      'now',
      '2026-2-1',
      '202611',
      '2026-00',
      '2026-13',
      '2026-11-00',
      '20261100',
      '2026-02-29',
      '2025-04-31',
      '2026-000',
      '2025-366',
      '2026-W00',
      '2026-W54',
      '2025-W53',
      '2026-W45-8',
      '2026-11-05T',
      '2026-11-05T24:01',
      '2026-11-05T08:60',
      '2026-11-05T08:30+24:00',
      '2026-11-05T08:30T09:30',
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
