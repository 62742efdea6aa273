import { WastedRequests } from './wasted-requests';

const KIB = 1024;

describe('requests that come to nothing', () => {
  it('are a minute’s worth at once and then one an interval, exactly', () => {
    const wasted = new WastedRequests();
    for (let i = 0; i < 60; i++) {
      expect(wasted.waitMs('key', 60, 5_000)).toBe(0);
      wasted.countInvalid('key', 60, 100, 5_000);
    }
    expect(wasted.waitMs('key', 60, 5_000)).toBe(1_000);
    expect(wasted.waitMs('key', 60, 5_999)).toBe(1);
    expect(wasted.waitMs('key', 60, 6_000)).toBe(0);
    wasted.countInvalid('key', 60, 100, 6_000);
    expect(wasted.waitMs('key', 60, 6_000)).toBe(1_000);
    expect(wasted.waitMs('another', 60, 6_000)).toBe(0);
    expect(wasted.waitMs('key', 60, 66_000)).toBe(0);
  });

  it('are as many as the key may send requests, and at least sixty a minute', () => {
    const count = (perMinute: number) => {
      const wasted = new WastedRequests();
      let requests = 0;
      while (wasted.waitMs('key', perMinute, 0) === 0) {
        wasted.countInvalid('key', perMinute, 0, 0);
        requests += 1;
      }
      return requests;
    };
    expect([count(1), count(60), count(600)]).toEqual([60, 60, 600]);
  });

  it('weigh by what was read: a body of 640 KiB is eleven', () => {
    const wasted = new WastedRequests();
    for (let i = 0; i < 5; i++) wasted.countInvalid('key', 60, 640 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(0);
    wasted.countInvalid('key', 60, 640 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(7_000);
  });

  it('one mistake, however large, does not shut a key out, and nobody waits for longer than a minute', () => {
    const wasted = new WastedRequests();
    wasted.countInvalid('key', 60, 10_240 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(1_000);
    for (let i = 0; i < 50; i++) wasted.countInvalid('key', 60, 10_240 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(61_000);
    expect(wasted.waitMs('key', 60, 61_000)).toBe(0);
  });

  it('of those that a limit refuses only large bodies count', () => {
    const wasted = new WastedRequests();
    for (let i = 0; i < 1_000; i++) wasted.countUnserved('key', 60, 63 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(0);
    for (let i = 0; i < 60; i++) wasted.countUnserved('key', 60, 64 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(1_000);
  });

  it('a clock that goes back by a month shuts nobody out', () => {
    const wasted = new WastedRequests();
    const monthMs = 30 * 86_400_000;
    for (let i = 0; i < 200; i++) wasted.countInvalid('key', 60, 0, monthMs);
    expect(wasted.waitMs('key', 60, 0)).toBeLessThanOrEqual(61_000);
  });
});
