import type { Backend } from '../../catalog/catalog';
import type { ManagedBackend } from './fleet';
import { meetingPlace } from './rendezvous';

export function urlOf({ origin, basePath }: Backend): string {
  return origin + basePath;
}

type Test = (one: ManagedBackend, nowMs: number) => boolean;

const isGoodAndFree: Test = (one, nowMs) => one.hasPlace && one.isGood(nowMs);
/** Does not leave calls without an answer until their clients leave. */
const isAnswering: Test = (one, nowMs) => isGoodAndFree(one, nowMs) && !one.breaker.silence.comesLast(nowMs);
/** For use when nothing better is left: a request that makes backends fail must not close the model to all others. */
const isWorthATry: Test = (one) => one.hasPlace && one.isUsable && !one.breaker.unreachable;
/** Refuses at once, so a call learns without a wait whether it is back. */
const refusesQuickly: Test = (one) => one.hasPlace && one.isUsable && !one.breaker.isSlowToRefuse;

/**
 * Chooses the backend for a call. Two are drawn by weight, and the one with fewer calls in flight for its weight gets
 * it. `full`: a good one exists, but has no place now. Null: none can be asked. Creates no object, except with an
 * affinity.
 * @param tried backends that are not asked again
 * @param affinity requests with the same one go to the same backend, if it is good and not much busier than others
 */
export function choose(
  all: readonly ManagedBackend[],
  tried: readonly ManagedBackend[],
  nowMs: number,
  affinity: number | null = null,
  random: () => number = Math.random,
): ManagedBackend | 'full' | null {
  const good =
    oneOf(all, tried, nowMs, isAnswering, affinity, random) ??
    oneOf(all, tried, nowMs, isGoodAndFree, affinity, random);
  if (good) return good;
  for (const one of all) if (one.isGood(nowMs) && !tried.includes(one)) return 'full';
  return ofTwo(all, tried, nowMs, isWorthATry, random) ?? ofTwo(all, tried, nowMs, refusesQuickly, random);
}

function oneOf(
  all: readonly ManagedBackend[],
  tried: readonly ManagedBackend[],
  nowMs: number,
  test: Test,
  affinity: number | null,
  random: () => number,
): ManagedBackend | null {
  const met = affinity !== null && meetingPlace(all, affinity, (one) => test(one, nowMs) && !tried.includes(one));
  return met || ofTwo(all, tried, nowMs, test, random);
}

function ofTwo(
  all: readonly ManagedBackend[],
  tried: readonly ManagedBackend[],
  nowMs: number,
  test: Test,
  random: () => number,
): ManagedBackend | null {
  let total = 0;
  for (const one of all) if (!tried.includes(one) && test(one, nowMs)) total += one.backend.weight;
  const first = drawn(all, tried, nowMs, test, null, random() * total);
  if (first === null || first.backend.weight >= total) return first;
  const second = drawn(all, tried, nowMs, test, first, random() * (total - first.backend.weight));
  return second !== null && isLessLoaded(second, first) ? second : first;
}

function drawn(
  all: readonly ManagedBackend[],
  tried: readonly ManagedBackend[],
  nowMs: number,
  test: Test,
  without: ManagedBackend | null,
  left: number,
): ManagedBackend | null {
  let last: ManagedBackend | null = null;
  for (const one of all) {
    if (one === without || tried.includes(one) || !test(one, nowMs)) continue;
    last = one;
    left -= one.backend.weight;
    if (left < 0) return one;
  }
  // By rounding.
  return last;
}

/**
 * Whether `one` is, with one more call, loaded no more than `other` is without it. So idle backends are chosen by their
 * weights, also a canary of weight 1 beside one of weight 100.
 */
function isLessLoaded(one: ManagedBackend, other: ManagedBackend): boolean {
  return (one.engine.inFlight + 1) * other.engineWeight <= other.engine.inFlight * one.engineWeight;
}

/** When the first of the backends that were not tried may be worth a call, in whole seconds. Null: there is none. */
export function soonestSeconds(
  all: readonly ManagedBackend[],
  tried: readonly ManagedBackend[],
  nowMs: number,
): number | null {
  let soonestMs = Infinity;
  for (const one of all) if (one.isUsable && !tried.includes(one)) soonestMs = Math.min(soonestMs, one.waitMs(nowMs));
  // One that is worth a call already was full, or the request had no further attempt.
  return soonestMs === Infinity ? null : Math.max(1, Math.ceil(soonestMs / 1_000));
}
