import { readUsageQuery } from './usage-query';

describe('the time range of a usage query', () => {
  const now = Date.parse('2026-11-21T10:00:00.000Z');
  const range = (query: object, nowMs = now) => {
    const { from, to } = readUsageQuery('ten_x', { ...query }, nowMs);
    return [from, to];
  };

  it('is by default this calendar month until now', () => {
    expect(range({})).toEqual(['2026-11-01T00:00:00.000Z', '2026-11-21T10:00:00.000Z']);
    expect(range({ from: '2026-11-20' })).toEqual(['2026-11-20T00:00:00.000Z', '2026-11-21T10:00:00.000Z']);
    expect(range({ to: '2026-11-20' })).toEqual(['2026-11-01T00:00:00.000Z', '2026-11-20T00:00:00.000Z']);
  });

  it('is not empty in the first millisecond of a month', () => {
    expect(range({}, Date.parse('2026-11-01'))).toEqual(['2026-11-01T00:00:00.000Z', '2026-11-01T00:00:00.001Z']);
  });

  it('must be given with its beginning on the first of a month, if it ends before that, and the error says why', () => {
    const now = Date.parse('2026-12-01T00:10:00Z');
    expect(() => range({ to: '2026-11-30' }, now)).toThrow(/The default of from is the start of this calendar month/);
    expect(range({ from: '2026-11-01', to: '2026-11-30' }, now)[1]).toBe('2026-11-30T00:00:00.000Z');
  });
});
