import { retryAfterSeconds, sooner } from './retry-after';

const NOW_MS = Date.UTC(2026, 10, 24, 12);

describe('Retry-After of a backend', () => {
  it.each([
    ['2', 2],
    ['1.2', 2],
    ['0', 1],
    ['99999', 3_600],
    ['Tue, 24 Nov 2026 12:00:07 GMT', 7],
    ['Tuesday, 24-Nov-26 12:00:07 GMT', 7],
    ['Tue, 24 Nov 2026 11:00:00 GMT', 1],
    ['Fri, 24 Nov 2028 12:00:00 GMT', 3_600],
    ['soon', null],
    ['-3', null],
    ['2026-11-24', null],
    ['', null],
    [undefined, null],
  ])('%j means %j s', (value, seconds) => expect(retryAfterSeconds(value, NOW_MS)).toBe(seconds));

  it('is the sooner of two, if both are known', () => {
    expect([sooner(3, 2), sooner(null, 2), sooner(3, null), sooner(null, null)]).toEqual([2, 2, 3, null]);
  });
});
