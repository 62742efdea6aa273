import type { ManagedBackend } from './fleet';

/** A backend with more than its share of the calls in progress, by this factor, is passed over. */
const LOAD_BOUND = 1.25;

/**
 * The backend for requests with this affinity. Candidates pass the test and have not much more than their share of the
 * calls. The affinity and the backends' names alone order them (weighted rendezvous hashing with bounded loads), and
 * the first one is chosen. So every replica chooses alike, and a backend that comes or goes moves only its own
 * requests. Null: none passes.
 */
export function meetingPlace(
  all: readonly ManagedBackend[],
  affinity: number,
  test: (one: ManagedBackend) => boolean,
): ManagedBackend | null {
  let calls = 1;
  let weights = 0;
  for (const one of all) {
    if (!test(one)) continue;
    // Backends at one URL have the same calls in progress.
    calls += (one.engine.inFlight * one.backend.weight) / one.engineWeight;
    weights += one.backend.weight;
  }
  let best: ManagedBackend | null = null;
  let bestScore = -Infinity;
  for (const one of all) {
    if (!test(one)) continue;
    const { weight } = one.backend;
    if (one.engine.inFlight + 1 > Math.ceil((LOAD_BOUND * calls * one.engineWeight) / weights)) continue;
    // The heavier of two backends has the higher score for its share of all affinities.
    const score = weight / -Math.log(uniform(affinity ^ one.hash));
    if (score <= bestScore) continue;
    best = one;
    bestScore = score;
  }
  return best;
}

/**
 * 32 bits as a number between 0 and 1, both exclusive, in which every bit of the input counts (murmur3's finalizer).
 */
function uniform(bits: number): number {
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (((bits ^ (bits >>> 16)) >>> 0) + 0.5) / 4_294_967_296;
}
