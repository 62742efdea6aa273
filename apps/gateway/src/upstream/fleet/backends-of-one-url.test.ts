import { backendAt, modelWith } from '../exchange.fixture';
import { choose } from './backend-choice';
import { Fleet, type ManagedBackend } from './fleet';

const CHOICES = 4_000;
const URL = 'http://127.0.0.1:1';
const at = (origin: string, weight: number, model: string) => ({ ...backendAt(origin), weight, model });

/** The share of each backend while each engine has this many calls for its weight. Every choice ends at once. */
function shares(all: readonly ManagedBackend[], affinityOf: (n: number) => number | null): number[] {
  let state = 20_261_129;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const counts = all.map(() => 0);
  for (let n = 0; n < CHOICES; n++)
    counts[all.indexOf(choose(all, [], 0, affinityOf(n), random) as ManagedBackend)]! += 1;
  return counts.map((count) => count / CHOICES);
}

describe.each([
  ['load', () => null],
  ['prefix', (n: number) => Math.imul(n, 0x9e3779b1) >>> 0],
])('backends at one URL, by %s,', (_, affinityOf) => {
  it.each([0, 40])('get calls by their weight while it has %i calls', (inFlight) => {
    const { backends } = new Fleet().poolOf(modelWith([at(URL, 1, 'canary'), at(URL, 9, 'inner')]));
    backends[0]!.engine.inFlight = inFlight;
    const [canary] = shares(backends, affinityOf);
    expect(Math.abs(canary! - 0.1)).toBeLessThan(0.03);
  });

  it.each([0, 40])('get calls by their weight beside another URL while each has %i calls', (inFlight) => {
    const all = [at(URL, 2, 'canary'), at(URL, 8, 'inner'), at('http://127.0.0.1:2', 10, 'inner')];
    const { backends } = new Fleet().poolOf(modelWith(all));
    for (const { engine } of backends) engine.inFlight = inFlight;
    const [canary, inner, other] = shares(backends, affinityOf);
    expect(Math.abs(canary! - 0.1)).toBeLessThan(0.03);
    expect(Math.abs(inner! - 0.4)).toBeLessThan(0.03);
    expect(Math.abs(other! - 0.5)).toBeLessThan(0.03);
  });
});
