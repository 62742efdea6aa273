import { Breaker } from './breaker';
import { backendAt } from '../exchange.fixture';
import { Engine, ManagedBackend } from './fleet';
import { meetingPlace } from './rendezvous';

const fleetOf = (...weights: number[]) =>
  weights.map((weight, n) => {
    const engine = new Engine(`http://gpu-${n}:8000/v1`);
    return new ManagedBackend('m', { ...backendAt('http://host'), weight }, engine, new Breaker());
  });
const any = () => true;
const AFFINITIES = Array.from({ length: 4_000 }, (_, n) => Math.imul(n, 0x9e3779b1) >>> 0);
const placesIn = (all: ManagedBackend[], test: (one: ManagedBackend) => boolean = any) =>
  AFFINITIES.map((affinity) => meetingPlace(all, affinity, test)!);

describe('the place where requests with the same affinity meet', () => {
  it('is the same on every replica, in whatever order the backends are listed', () => {
    const [one, other] = [fleetOf(1, 1, 1), fleetOf(1, 1, 1)];
    const names = (all: ManagedBackend[]) => placesIn(all).map(({ engine }) => engine.name);
    expect(names(other.reverse())).toEqual(names(one));
  });

  it('is each backend by its weight', () => {
    const all = fleetOf(1, 2, 5);
    const places = placesIn(all);
    const shares = all.map((one) => places.filter((place) => place === one).length / places.length);
    for (const [n, wanted] of [1 / 8, 2 / 8, 5 / 8].entries()) expect(Math.abs(shares[n]! - wanted)).toBeLessThan(0.03);
  });

  it('moves only the requests of a backend that is gone', () => {
    const all = fleetOf(1, 1, 1, 1);
    const before = placesIn(all);
    const after = placesIn(all, (one) => one !== all[2]);
    for (const [n, place] of before.entries()) if (place !== all[2]) expect(after[n]).toBe(place);
    expect(after).not.toContain(all[2]);
  });

  it('is another one while its backend has more than its share of the calls', () => {
    const all = fleetOf(1, 1);
    const affinity = AFFINITIES.find((one) => meetingPlace(all, one, any) === all[0])!;
    all[0]!.engine.inFlight = 10;
    all[1]!.engine.inFlight = 7;
    expect(meetingPlace(all, affinity, any)).toBe(all[0]);
    all[1]!.engine.inFlight = 5;
    expect(meetingPlace(all, affinity, any)).toBe(all[1]);
    // Somebody always has room.
    expect(meetingPlace(fleetOf(1), affinity, any)).not.toBeNull();
    expect(meetingPlace(all, affinity, () => false)).toBeNull();
  });
});
