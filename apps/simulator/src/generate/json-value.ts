import { mix, Random } from './random';
import { words } from './words';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Schema = { [keyword: string]: unknown };

/** Below this depth only what a schema requires is made, so that recursive schemas end. */
const FULL_DEPTH = 6;
const MAX_DEPTH = 32;
const MAX_ITEMS = 1_000;
const MAX_STRING_CHARS = 10_000;
const DAY_MS = 86_400_000;

/** A schema that no value of bounded depth and size satisfies, or that says what is not understood here. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

/**
 * A value that is valid against a JSON schema, the same for the same seed. Understands what structured output and tool parameters
 * use: type, enum, const, properties, required, additionalProperties, items, prefixItems, the bounds of numbers, strings and arrays, multipleOf, the usual formats,
 * anyOf, oneOf, allOf, $ref within the schema. Patterns only of the form `^[class]{m,n}$` and literal text. Throws `SchemaError`.
 */
export function valueFor(schema: unknown, seed: number): Json {
  return new Maker(schema, seed).make(schema, 0);
}

/** What `response_format: {type: "json_object"}` gets, as no schema says more. */
export function anyObject(seed: number): Json {
  const random = new Random(seed);
  return {
    answer: words(random.next(), 12).join(''),
    confidence: random.below(100) / 100,
    topics: [word(random), word(random)],
  };
}

class Maker {
  readonly #root: unknown;
  readonly #random: Random;

  constructor(root: unknown, seed: number) {
    this.#root = root;
    this.#random = new Random(mix(seed, 0x5c4e3a));
  }

  make(given: unknown, depth: number): Json {
    if (depth > MAX_DEPTH) throw new SchemaError('the schema is recursive without end');
    if (given === true || given === undefined) return word(this.#random);
    const schema = this.#flatten(given, depth);
    if ('const' in schema) return schema['const'] as Json;
    if (Array.isArray(schema['enum'])) return this.#random.pick(schema['enum'] as Json[]);
    const type = this.#type(schema, depth);
    switch (type) {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return this.#array(schema, depth);
      case 'string':
        return this.#string(schema);
      case 'integer':
      case 'number':
        return this.#number(schema, type === 'integer');
      case 'boolean':
        return this.#random.below(2) === 1;
      case 'null':
        return null;
      default:
        throw new SchemaError(`unknown type ${JSON.stringify(type)}`);
    }
  }

  /** References followed, `allOf` merged, one branch of `anyOf` or `oneOf` taken: deep down the one that is shortest as text, which recursion rarely is. */
  #flatten(given: unknown, depth: number): Schema {
    let schema = asSchema(given);
    for (let hops = 0; typeof schema['$ref'] === 'string'; hops++) {
      if (hops > MAX_DEPTH) throw new SchemaError('$ref goes in a circle');
      const { $ref, ...rest } = schema;
      schema = merge(asSchema(this.#resolve($ref as string)), rest);
    }
    const { allOf, anyOf, oneOf, ...own } = schema;
    let out: Schema = own;
    if (Array.isArray(allOf)) for (const part of allOf) out = merge(out, this.#flatten(part, depth));
    for (const branches of [anyOf, oneOf]) {
      if (!Array.isArray(branches) || branches.length === 0) continue;
      const shortestFirst = [...branches].sort((a, b) => simplicity(a) - simplicity(b));
      out = merge(out, this.#flatten(depth >= FULL_DEPTH ? shortestFirst[0] : this.#random.pick(branches), depth));
    }
    return out;
  }

  #resolve(pointer: string): unknown {
    if (!pointer.startsWith('#')) throw new SchemaError(`$ref ${pointer} leaves the schema`);
    let at: unknown = this.#root;
    for (const part of pointer.split('/').slice(1)) {
      const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      at = typeof at === 'object' && at !== null ? (at as Schema)[name] : undefined;
    }
    if (at === undefined) throw new SchemaError(`$ref ${pointer} leads nowhere`);
    return at;
  }

  #type(schema: Schema, depth: number): unknown {
    const type = schema['type'];
    if (Array.isArray(type))
      return depth >= FULL_DEPTH && type.includes('null') ? 'null' : this.#random.pick(type as unknown[]);
    if (type !== undefined) return type;
    if ('properties' in schema || 'required' in schema || 'additionalProperties' in schema) return 'object';
    if ('items' in schema || 'prefixItems' in schema || 'minItems' in schema) return 'array';
    if ('minimum' in schema || 'maximum' in schema || 'multipleOf' in schema) return 'number';
    return 'string';
  }

  #object(schema: Schema, depth: number): Json {
    const properties = asSchema(schema['properties'] ?? {});
    const required = new Set(Array.isArray(schema['required']) ? (schema['required'] as string[]) : []);
    const out: Record<string, Json> = {};
    const set = (name: string, of: unknown) =>
      Object.defineProperty(out, name, {
        value: this.make(of, depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    for (const [name, property] of Object.entries(properties)) {
      if (property !== false && (depth < FULL_DEPTH || required.has(name))) set(name, property);
    }
    const additional = schema['additionalProperties'];
    for (const name of required) if (!Object.hasOwn(out, name)) set(name, additional === false ? true : additional);
    const wanted = typeof schema['minProperties'] === 'number' ? Math.min(schema['minProperties'], MAX_ITEMS) : 0;
    for (let i = 0; Object.keys(out).length < wanted; i++) set(`field${i}`, additional);
    return out;
  }

  #array(schema: Schema, depth: number): Json {
    const prefix = Array.isArray(schema['prefixItems']) ? (schema['prefixItems'] as unknown[]) : [];
    const least = bound(schema['minItems'], 0);
    const most = Math.min(bound(schema['maxItems'], MAX_ITEMS), MAX_ITEMS);
    const usual = depth >= FULL_DEPTH ? 0 : 1 + this.#random.below(3);
    const closed = schema['items'] === false;
    const length = Math.max(least, Math.min(most, closed ? prefix.length : Math.max(usual, prefix.length)));
    if (length > MAX_ITEMS) throw new SchemaError(`more than ${MAX_ITEMS} items`);
    const out: Json[] = [];
    for (let i = 0; i < length; i++) {
      let item = this.make(i < prefix.length ? prefix[i] : schema['items'], depth + 1);
      for (
        let tries = 0;
        schema['uniqueItems'] === true && tries < MAX_DEPTH && out.some((other) => same(other, item));
        tries++
      )
        item = this.make(schema['items'], depth + 1);
      if (schema['uniqueItems'] === true && out.length >= least && out.some((other) => same(other, item))) break;
      out.push(item);
    }
    return out;
  }

  #number(schema: Schema, integer: boolean): number {
    const step = typeof schema['multipleOf'] === 'number' ? schema['multipleOf'] : integer ? 1 : 0.25;
    const open = (keyword: string, inclusive: string, sign: 1 | -1): number | undefined => {
      const exclusive = schema[keyword];
      const limit = schema[inclusive];
      // The draft-4 form: exclusiveMinimum: true beside minimum.
      if (exclusive === true && typeof limit === 'number') return limit / step + sign * 1e-9;
      const limits = [
        typeof exclusive === 'number' ? exclusive / step + sign * 1e-9 : undefined,
        typeof limit === 'number' ? limit / step : undefined,
      ];
      const given = limits.filter((value) => value !== undefined);
      return given.length === 0 ? undefined : sign === 1 ? Math.max(...given) : Math.min(...given);
    };
    const low = open('exclusiveMinimum', 'minimum', 1);
    const high = open('exclusiveMaximum', 'maximum', -1);
    const first = Math.ceil(low ?? (high === undefined ? 1 : high - 100));
    const last = Math.floor(high ?? first + 100);
    if (first > last) {
      // No multiple of the usual step lies in the interval: its middle, if any number will do.
      if (low === undefined || high === undefined || integer || schema['multipleOf'] !== undefined || low > high)
        throw new SchemaError('no number lies within the bounds');
      return ((low + high) / 2) * step;
    }
    return Number(((first + this.#random.below(Math.min(last - first, 100) + 1)) * step).toPrecision(12));
  }

  #string(schema: Schema): string {
    if (typeof schema['pattern'] === 'string') return this.#matching(schema['pattern']);
    const format = typeof schema['format'] === 'string' ? FORMATS[schema['format']] : undefined;
    if (format) return format(this.#random);
    const least = bound(schema['minLength'], 0);
    const most = bound(schema['maxLength'], MAX_STRING_CHARS);
    if (least > MAX_STRING_CHARS) throw new SchemaError(`a string of more than ${MAX_STRING_CHARS} characters`);
    let text = words(this.#random.next(), 2 + this.#random.below(3))
      .slice(0, -1)
      .join('');
    while (text.length < least) text += ` ${word(this.#random)}`;
    return text.length > most ? text.slice(0, most) : text;
  }

  /** A text for `^`, literal characters, `\d`, `\w`, `[…]` with `{m,n}`, `+`, `*`, `?`, `$`; checked against the pattern before it is believed. */
  #matching(pattern: string): string {
    const body = pattern.replace(/^\^/, '').replace(/\$$/, '');
    const atoms = body.matchAll(/(\[[^\]]+\]|\\.|[^\\])(\{(\d+)(?:,\d*)?\}|[+*?])?/g);
    let text = '';
    for (const [, atom = '', quantifier, least] of atoms) {
      const times =
        least !== undefined
          ? Math.min(Number(least), MAX_STRING_CHARS)
          : quantifier === '*' || quantifier === '?'
            ? 0
            : 1;
      text += this.#character(atom).repeat(times);
    }
    if (!new RegExp(pattern, 'u').test(text)) throw new SchemaError(`pattern ${pattern} is beyond this generator`);
    return text;
  }

  #character(atom: string): string {
    if (atom.length === 1 && atom !== '.') return atom;
    const accepted = new RegExp(`^${atom}$`, 'u');
    const start = this.#random.below(PRINTABLE.length);
    for (let i = 0; i < PRINTABLE.length; i++) {
      const character = PRINTABLE[(start + i) % PRINTABLE.length]!;
      if (accepted.test(character)) return character;
    }
    return '';
  }
}

const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).sort(
  (a, b) => Number(/\w/.test(b)) - Number(/\w/.test(a)),
);

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

function asSchema(value: unknown): Schema {
  if (value === true || value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SchemaError('a schema must be an object');
  return value as Schema;
}

function merge(a: Schema, b: Schema): Schema {
  const out = { ...a, ...b };
  if (a['properties'] && b['properties'])
    out['properties'] = { ...asSchema(a['properties']), ...asSchema(b['properties']) };
  if (Array.isArray(a['required']) && Array.isArray(b['required']))
    out['required'] = [...(a['required'] as unknown[]), ...(b['required'] as unknown[])];
  return out;
}

function simplicity(schema: unknown): number {
  const text = JSON.stringify(schema) ?? '';
  return text.length + (text.includes('"$ref"') ? MAX_STRING_CHARS : 0);
}

function bound(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

function same(a: Json, b: Json): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function word(random: Random): string {
  return words(random.next(), 1)[0]!.toLowerCase();
}
