import { backendAt } from '../exchange.fixture';
import { choose, soonestSeconds } from './backend-choice';
import { Breaker } from './breaker';
import { Engine, ManagedBackend } from './fleet';

const NOW_MS = 1_000;

const managed = (weight: number, inFlight = 0, maxConcurrency = Infinity): ManagedBackend => {
  const engine = new Engine(`http://host-${weight}/v1`);
  engine.inFlight = inFlight;
  return new ManagedBackend('m', { ...backendAt('http://host'), weight, maxConcurrency }, engine, new Breaker());
};

/** The share of each backend in many choices, each of which ends before the next. */
function shares(all: readonly ManagedBackend[], choices = 4_000): number[] {
  let state = 20_261_124;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const counts = all.map(() => 0);
  for (let n = 0; n < choices; n++) counts[all.indexOf(choose(all, [], NOW_MS, null, random) as ManagedBackend)]! += 1;
  return counts.map((count) => count / choices);
}

const broken = (one: ManagedBackend, result: 'failed' | 'unreachable') => {
  for (let n = 0; n < 5; n++) one.breaker.ended(result, false, NOW_MS);
  return one;
};

describe('the choice of a backend', () => {
  it('goes by weight while all are idle', () => {
    const [one, three, six] = shares([managed(1), managed(3), managed(6)]);
    for (const [share, wanted] of [
      [one, 0.1],
      [three, 0.3],
      [six, 0.6],
    ] as const)
      expect(Math.abs(share! - wanted)).toBeLessThan(0.03);
    const [canary] = shares([managed(1), managed(100)]);
    expect(canary).toBeLessThan(0.02);
    expect(canary).toBeGreaterThan(0.004);
  });

  it('takes the one with fewer calls in flight for its weight', () => {
    expect(shares([managed(1, 3), managed(1, 2)])).toEqual([0, 1]);
    expect(shares([managed(10, 31), managed(1, 2)])).toEqual([0, 1]);
    // A canary with a call in flight gets no second one before the other has a hundred times as many.
    expect(shares([managed(1, 1), managed(100, 99)])).toEqual([0, 1]);
  });

  it('never takes one of weight 0, nor one that is drained', () => {
    const drained = managed(1);
    drained.engine.drained = true;
    expect(shares([managed(0), drained, managed(1)])).toEqual([0, 0, 1]);
    expect(choose([managed(0), drained], [], NOW_MS)).toBeNull();
  });

  it('passes over those that are unhealthy, asked for a pause, or have an open breaker, while others are good', () => {
    const ill = managed(1);
    ill.engine.failingChecks.add(ill);
    const resting = managed(1);
    resting.breaker.rest(5, NOW_MS);
    const all = [ill, resting, broken(managed(1), 'failed'), broken(managed(1), 'unreachable'), managed(1)];
    expect(shares(all)).toEqual([0, 0, 0, 0, 1]);
  });

  it('says that a good one is full rather than to ask one that fails', () => {
    const full = managed(1, 2, 2);
    expect(choose([broken(managed(1), 'failed'), full], [], NOW_MS)).toBe('full');
    expect(choose([full], [full], NOW_MS)).toBeNull();
  });

  it('asks one that fails if there is no other, but never waits for a connection that does not open', () => {
    const failing = broken(managed(1), 'failed');
    const gone = broken(managed(1), 'unreachable');
    expect(shares([failing, gone])).toEqual([1, 0]);
    expect(choose([gone], [], NOW_MS)).toBe(gone);
    gone.breaker.isSlowToRefuse = true;
    expect(choose([gone], [], NOW_MS)).toBeNull();
  });

  it('tells when the first of the others may be worth a call', () => {
    const [one, other] = [managed(1), managed(1)];
    one.breaker.rest(7, NOW_MS);
    other.breaker.rest(3.5, NOW_MS);
    expect(soonestSeconds([one, other], [], NOW_MS)).toBe(4);
    expect(soonestSeconds([one, other], [other], NOW_MS)).toBe(7);
    expect(soonestSeconds([one, managed(1)], [], NOW_MS)).toBe(1);
    expect(soonestSeconds([one, other, managed(0)], [one, other], NOW_MS)).toBeNull();
  });
});
