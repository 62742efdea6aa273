import { textMatching } from './pattern';
import type { Random } from './random';
import { SchemaError } from './schema-error';
import { words } from './words';

export type Schema = { [keyword: string]: unknown };

const MAX_STRING_CHARS = 10_000;
/** A number is at most this much above its lower bound. */
const USUAL_STEPS = 100;
/** Of the decimals of `multipleOf` for an integer. */
const MAX_SCALE = 1e9;
const DAY_MS = 86_400_000;

/** A number within the schema's bounds and on its grid. */
export function numberFor(schema: Schema, integer: boolean, random: Random): number {
  const grid = typeof schema['multipleOf'] === 'number' ? schema['multipleOf'] : integer ? 1 : 0.25;
  if (!(grid > 0)) throw new SchemaError('multipleOf must be above 0');
  const step = integer ? wholeStep(grid) : grid;
  const lower = limits(schema, 'minimum', 'exclusiveMinimum');
  const upper = limits(schema, 'maximum', 'exclusiveMaximum');
  // Infinite without a bound.
  const least = Math.max(...lower.map(({ at, open }) => (open ? Math.floor(at / step) + 1 : Math.ceil(at / step))));
  const most = Math.min(...upper.map(({ at, open }) => (open ? Math.ceil(at / step) - 1 : Math.floor(at / step))));
  const first = Number.isFinite(least) ? least : Math.min(1, most - USUAL_STEPS);
  const last = Math.min(most, first + USUAL_STEPS);
  if (first <= last) {
    const multiple = (first + random.below(last - first + 1)) * step;
    const number = Number.isInteger(multiple) ? multiple : Number(multiple.toPrecision(15));
    // A bound or a multiple near the largest double overflows.
    if (!Number.isFinite(number) || lower.some(({ at }) => number < at) || upper.some(({ at }) => number > at))
      throw new SchemaError('the numbers within the bounds are too large');
    return number;
  }
  // No multiple of the default step is within the bounds: take the middle, if any number is valid.
  const from = Math.max(...lower.map(({ at }) => at));
  const to = Math.min(...upper.map(({ at }) => at));
  const empty = from > to || (from === to && [...lower, ...upper].some(({ open }) => open));
  if (integer || schema['multipleOf'] !== undefined || empty) throw new SchemaError('no number lies within the bounds');
  return (from + to) / 2;
}

/** The least whole multiple of a step with at most 9 decimals: 1 for 0.5, 3 for 0.3. */
function wholeStep(step: number): number {
  let scale = 1;
  while (Math.abs(step * scale - Math.round(step * scale)) > 1e-6 && scale < MAX_SCALE) scale *= 10;
  const scaled = Math.round(step * scale);
  return Math.max(1, scaled / greatestDivisor(scaled, scale));
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** The bounds of one side, in the current form or in the form of draft 4 (`exclusive…: true`). */
function limits(schema: Schema, inclusive: string, exclusive: string): { at: number; open: boolean }[] {
  const out = [];
  if (typeof schema[inclusive] === 'number') out.push({ at: schema[inclusive], open: schema[exclusive] === true });
  if (typeof schema[exclusive] === 'number') out.push({ at: schema[exclusive], open: true });
  return out;
}

/** A text with the schema's pattern, format or length. */
export function stringFor(schema: Schema, random: Random): string {
  if (typeof schema['pattern'] === 'string') return textMatching(schema['pattern'], random);
  const format = schema['format'];
  if (typeof format === 'string' && Object.hasOwn(FORMATS, format)) return FORMATS[format]!(random);
  const least = bound(schema['minLength'], 0);
  const most = bound(schema['maxLength'], MAX_STRING_CHARS);
  if (least > MAX_STRING_CHARS) throw new SchemaError(`a string of more than ${MAX_STRING_CHARS} characters`);
  let text = words(random.next(), 2 + random.below(3))
    .slice(0, -1)
    .join('');
  while (text.length < least) text += ` ${word(random)}`;
  return text.length > most ? text.slice(0, most) : text;
}

const isoTime = (random: Random): string =>
  new Date(Date.UTC(2024, 0, 1) + random.below(365) * DAY_MS + random.below(86_400) * 1_000).toISOString();
const hex = (random: Random, digits: number): string =>
  Array.from({ length: digits }, () => random.below(16).toString(16)).join('');
const FORMATS: Record<string, (random: Random) => string> = {
  'date-time': isoTime,
  date: (random) => isoTime(random).slice(0, 10),
  time: (random) => isoTime(random).slice(11),
  duration: (random) => `PT${1 + random.below(59)}M`,
  email: (random) => `${word(random)}@example.com`,
  hostname: (random) => `${word(random)}.example.com`,
  uri: (random) => `https://example.com/${word(random)}`,
  ipv4: (random) => `192.0.2.${1 + random.below(254)}`,
  ipv6: (random) => `2001:db8::${hex(random, 4)}`,
  uuid: (random) => `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-8${hex(random, 3)}-${hex(random, 12)}`,
};

export function bound(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

export function word(random: Random): string {
  return words(random.next(), 1)[0]!.toLowerCase();
}
