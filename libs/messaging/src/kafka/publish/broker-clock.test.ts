import { BrokerClock } from './broker-clock';

describe('the clock of the brokers', () => {
  const now = () => performance.now();

  it('is right within the error of its sample', () => {
    const clock = new BrokerClock();
    const at = now();
    clock.observe(5_000_000, at - 30, at + 10);
    const [earliest, latest, passed] = [clock.earliestMs(), clock.latestMs(), now() - at];
    expect(earliest).toBeLessThanOrEqual(5_000_000 + passed - 10);
    expect(latest).toBeGreaterThanOrEqual(5_000_000 + 30);
    expect(latest).toBeLessThanOrEqual(5_000_000 + passed + 30);
    expect(clock.isExact && clock.isFresh).toBe(true);
  });

  it('prefers the sample with the smaller error, and replaces an old sample by any newer one', () => {
    const clock = new BrokerClock();
    const at = now();
    clock.observe(1_000_000, at - 10, at);
    clock.observe(9_000_000, at - 5_000, at);
    expect(clock.latestMs()).toBeLessThan(2_000_000);
    clock.observe(9_000_000, at + 61_000 - 100, at + 61_000);
    expect(clock.latestMs()).toBeGreaterThan(8_000_000);
    clock.observe(1_000_000, at + 61_000 - 20, at + 61_010);
    expect(clock.latestMs()).toBeLessThan(2_000_000);
  });

  it('refuses nothing before the first sample, nor by an invalid stamp', () => {
    const clock = new BrokerClock();
    for (const stamp of [-1, NaN]) clock.observe(stamp, now(), now());
    expect(clock.earliestMs()).toBe(0);
    expect(clock.isFresh || clock.isExact).toBe(false);
  });
});
