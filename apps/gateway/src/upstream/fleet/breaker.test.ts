import { Breaker, type CallResult } from './breaker';

const fail = (breaker: Breaker, times: number, nowMs: number, result: CallResult = 'failed') => {
  for (let n = 0; n < times; n++) breaker.ended(result, false, nowMs);
};

describe('a circuit breaker', () => {
  it('opens after five failures in a row, and not after fewer', () => {
    const breaker = new Breaker();
    fail(breaker, 4, 1);
    breaker.ended('succeeded', false, 1);
    fail(breaker, 4, 1);
    expect(breaker.allows(1)).toBe(true);
    fail(breaker, 1, 1);
    expect([breaker.allows(1), breaker.waitMs(1)]).toEqual([false, 1_000]);
  });

  it('opens when half of the calls of a window fail', () => {
    const breaker = new Breaker();
    for (let n = 0; n < 9; n++) {
      fail(breaker, 1, 1);
      breaker.ended('succeeded', false, 1);
    }
    // A new window.
    for (let n = 0; n < 9; n++) {
      breaker.ended('succeeded', false, 20_000);
      fail(breaker, 1, 20_000);
    }
    expect(breaker.isOpen).toBe(false);
    breaker.ended('succeeded', false, 20_000);
    fail(breaker, 1, 20_000);
    expect(breaker.isOpen).toBe(true);
  });

  it('lets one probe through when its time is over, and closes after its success', () => {
    const breaker = new Breaker();
    fail(breaker, 5, 1);
    expect(breaker.allows(1_000)).toBe(false);
    expect(breaker.begin(1_000)).toBe(false);
    expect([breaker.begin(1_001), breaker.begin(1_001), breaker.allows(9_000)]).toEqual([true, false, false]);
    breaker.ended('succeeded', true, 1_002);
    expect(breaker.state).toBe('closed');
  });

  it('stays open twice as long after each failed probe, up to a minute', () => {
    const breaker = new Breaker();
    fail(breaker, 5, 1);
    const waits: number[] = [];
    for (let nowMs = 1, n = 0; n < 8; n++) {
      nowMs += breaker.waitMs(nowMs);
      expect(breaker.begin(nowMs)).toBe(true);
      breaker.ended('failed', true, nowMs);
      waits.push(breaker.waitMs(nowMs));
    }
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it('makes another call the probe if the client of the first one left', () => {
    const breaker = new Breaker();
    fail(breaker, 5, 1);
    expect(breaker.begin(2_000)).toBe(true);
    breaker.abandoned(true);
    expect(breaker.begin(2_000)).toBe(true);
  });

  it('makes another call the probe if the first one takes long, as a long plain answer does', () => {
    const breaker = new Breaker();
    fail(breaker, 5, 1);
    expect([breaker.begin(2_000), breaker.begin(11_999), breaker.allows(11_999)]).toEqual([true, false, false]);
    expect([breaker.allows(12_000), breaker.begin(12_000), breaker.begin(12_001)]).toEqual([true, true, false]);
    breaker.ended('succeeded', true, 13_000);
    expect(breaker.state).toBe('closed');
    // The first one is a call like others now.
    breaker.ended('failed', true, 300_000);
    expect(breaker.state).toBe('closed');
  });

  it('has probes as rarely as its waits are long, if they take long', () => {
    const breaker = new Breaker();
    fail(breaker, 5, 1);
    let nowMs = 1;
    for (let n = 0; n < 6; n++) {
      nowMs += breaker.waitMs(nowMs);
      breaker.begin(nowMs);
      breaker.ended('failed', true, nowMs);
    }
    nowMs += breaker.waitMs(nowMs);
    expect([breaker.begin(nowMs), breaker.begin(nowMs + 59_999), breaker.begin(nowMs + 60_000)]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('opens after one connection that cannot be opened, and lets no call through until one could', () => {
    const breaker = new Breaker();
    expect(breaker.ended('unreachable', false, 1)).toBe(true);
    expect([breaker.allows(90_000), breaker.begin(90_000)]).toEqual([false, false]);
    breaker.stillUnreachable(90_000);
    breaker.stillUnreachable(90_000);
    expect(breaker.waitMs(90_000)).toBe(1_000);
    breaker.reached();
    expect([breaker.allows(90_500), breaker.allows(91_000), breaker.begin(91_000)]).toEqual([false, true, true]);
  });

  it('ignores the results of calls that began before it opened', () => {
    const breaker = new Breaker();
    fail(breaker, 5, 1);
    breaker.ended('succeeded', false, 2);
    fail(breaker, 5, 3);
    expect(breaker.waitMs(1)).toBe(1_000);
  });
});
