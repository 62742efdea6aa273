import type { Usage } from '../../../src/api/answers';

const STEP_MS = { hour: 3_600_000, day: 86_400_000 };
/** The number of colours that can be told apart. All further series are one. */
const MAX_SERIES = 8;
const MAX_TICKS = 5;
/** In nanos. The axis of free requests ends there. */
const CENT = 10_000_000n;
/** Steps of the keys for pages, from one end to the other. */
const PAGES = 10;

export interface Bar {
  /** The beginning of its step. */
  from: string;
  /** By series. */
  nanos: bigint[];
  total: bigint;
}

export interface Bars {
  /** Models or keys, highest cost first. Null: all others, or all requests. */
  series: (string | null)[];
  /** One for every step of the range, those without requests too. */
  bars: Bar[];
}

/** The spend as stacked bars. */
export function barsOf({ from, to, names, points }: Usage, step: 'day' | 'hour'): Bars {
  const named = new Map(names.slice(0, MAX_SERIES).map((name, index) => [name, index]));
  const series: Bars['series'] = [...named.keys()];
  if (points.some(({ name }) => name === null || !named.has(name))) series.push(null);
  const bars = new Map<number, Bar>();
  for (let ms = Date.parse(from); ms < Date.parse(to); ms += STEP_MS[step])
    bars.set(ms, { from: new Date(ms).toISOString(), nanos: series.map(() => 0n), total: 0n });
  for (const { at, name, costNanos } of points) {
    const bar = bars.get(Date.parse(at))!;
    bar.nanos[named.get(name ?? '') ?? named.size]! += BigInt(costNanos);
    bar.total += BigInt(costNanos);
  }
  return { series, bars: [...bars.values()] };
}

/** Round amounts from zero to at least the highest bar, in nanos. */
export function ticksOf(bars: readonly Bar[]): bigint[] {
  const highest = bars.reduce((max, { total }) => (total > max ? total : max), 0n);
  if (highest === 0n) return [0n, CENT];
  const step = roundSteps(highest).find((nanos) => nanos * BigInt(MAX_TICKS - 1) >= highest)!;
  const count = Number((highest + step - 1n) / step) + 1;
  return Array.from({ length: count }, (_, index) => BigInt(index) * step);
}

/** 1, 2, 5, 10, 20 and so on, the last one at least `highest`. */
function roundSteps(highest: bigint): bigint[] {
  const steps: bigint[] = [];
  for (let power = 1n; (steps.at(-1) ?? 0n) < highest; power *= 10n) steps.push(power, 2n * power, 5n * power);
  return steps;
}

/** Places for `wanted` labels, in the middle of equal parts, so that none is cut at the edges. */
export function labelled(bars: number, wanted: number): number[] {
  return [...new Set(Array.from({ length: wanted }, (_, part) => Math.floor(((part + 0.5) * bars) / wanted)))];
}

/**
 * The bar to which a key leads from another one, as keys move a slider. The keys for pages go a tenth of the way. Null:
 * the key moves nothing.
 */
export function placeOf(key: string, place: number, bars: number): number | null {
  const page = Math.max(1, Math.round(bars / PAGES));
  const moves: Record<string, number> = {
    ...{ ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 },
    ...{ PageDown: -page, PageUp: page, Home: -bars, End: bars },
  };
  const move = moves[key];
  return move === undefined ? null : Math.min(Math.max(place + move, 0), bars - 1);
}
