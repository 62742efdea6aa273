import { WastedRequests } from './wasted-requests';

const KIB = 1024;

describe('wasted requests', () => {
  it('are allowed as one minute of requests at once, and then exactly one an interval', () => {
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

  it('are limited to the request limit of the key, and to no less than sixty a minute', () => {
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

  it('count by the bytes read: a body of 640 KiB counts as eleven', () => {
    const wasted = new WastedRequests();
    for (let i = 0; i < 5; i++) wasted.countInvalid('key', 60, 640 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(0);
    wasted.countInvalid('key', 60, 640 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(7_000);
  });

  it('do not lock a key out after one large mistake, and never for more than a minute and an interval', () => {
    const wasted = new WastedRequests();
    wasted.countInvalid('key', 60, 10_240 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(1_000);
    for (let i = 0; i < 50; i++) wasted.countInvalid('key', 60, 10_240 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(61_000);
    expect(wasted.waitMs('key', 60, 61_000)).toBe(0);
  });

  it('include requests that a limit refused only if their bodies were large', () => {
    const wasted = new WastedRequests();
    for (let i = 0; i < 1_000; i++) wasted.countUnserved('key', 60, 63 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(0);
    for (let i = 0; i < 60; i++) wasted.countUnserved('key', 60, 64 * KIB, 0);
    expect(wasted.waitMs('key', 60, 0)).toBe(1_000);
  });

  it('lock no key out after the clock went back by a month', () => {
    const wasted = new WastedRequests();
    const monthMs = 30 * 86_400_000;
    for (let i = 0; i < 200; i++) wasted.countInvalid('key', 60, 0, monthMs);
    const waitMs = wasted.waitMs('key', 60, 0);
    expect(waitMs).toBeLessThanOrEqual(61_000);
    expect(wasted.waitMs('key', 60, waitMs)).toBe(0);
  });
});
