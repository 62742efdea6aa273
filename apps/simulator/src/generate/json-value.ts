import { Budget } from './budget';
import { mix, Random } from './random';
import { SchemaError } from './schema-error';
import { bound, numberFor, stringFor, word, type Schema } from './schema-scalars';
import { words } from './words';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Below this depth, or beyond this number of values, only required properties are made. So recursive schemas end. */
const FULL_DEPTH = 6;
const FULL_VALUES = 500;
const MAX_DEPTH = 32;
const MAX_ITEMS = 1_000;
const REF_PENALTY_CHARS = 10_000;

/**
 * Returns a value that is valid against a JSON schema, the same for the same seed. Supports the keywords of structured
 * output and tool parameters: type, enum, const, properties, required, additionalProperties, items, prefixItems, the
 * bounds of numbers, strings and arrays, multipleOf, the usual formats, anyOf, oneOf, allOf, $ref within the schema.
 * Patterns may only use character classes with counts, and literal text. Throws `SchemaError`, also if the value would
 * cost more than is left of the budget.
 */
export function valueFor(schema: unknown, seed: number, budget = new Budget()): Json {
  return new Maker(schema, seed, budget).make(schema, 0);
}

/** The answer to `response_format: {type: "json_object"}`, which has no schema. */
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
  readonly #budget: Budget;
  /** Of this value, so that it does not depend on other choices. */
  #values = 0;
  /** By branch of a schema. */
  readonly #simplicities = new Map<unknown, number>();

  constructor(root: unknown, seed: number, budget: Budget) {
    this.#root = root;
    this.#budget = budget;
    this.#random = new Random(mix(seed, 0x5c4e3a));
  }

  make(given: unknown, depth: number): Json {
    if (depth > MAX_DEPTH) throw new SchemaError('the schema is recursive without end');
    this.#values++;
    this.#budget.spendValue();
    if (given === true || given === undefined) return this.#text(word(this.#random));
    const schema = this.#flatten(given, depth);
    if ('const' in schema) return this.#text(schema['const'] as Json);
    if (Array.isArray(schema['enum'])) {
      if (schema['enum'].length === 0) throw new SchemaError('enum is empty');
      return this.#text(this.#random.pick(schema['enum'] as Json[]));
    }
    const type = this.#type(schema, depth);
    switch (type) {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return this.#array(schema, depth);
      case 'string':
        if (typeof schema['pattern'] === 'string') this.#budget.spendSteps(schema['pattern'].length);
        return this.#text(stringFor(schema, this.#random));
      case 'integer':
      case 'number':
        return numberFor(schema, type === 'integer', this.#random);
      case 'boolean':
        return this.#random.below(2) === 1;
      case 'null':
        return null;
      default:
        throw new SchemaError(`unknown type ${JSON.stringify(type)}`);
    }
  }

  #text(value: Json): Json {
    this.#budget.spendText(value);
    return value;
  }

  /**
   * Follows references, merges `allOf` and takes one branch of `anyOf` or `oneOf`. Deep in a schema it takes the
   * branch with the shortest text, which is rarely the recursive one.
   */
  #flatten(given: unknown, depth: number, hops = 0): Schema {
    if (hops > MAX_DEPTH) throw new SchemaError('the schema refers to itself in a circle');
    let schema = this.#read(given);
    while (typeof schema['$ref'] === 'string') {
      if (++hops > MAX_DEPTH) throw new SchemaError('$ref goes in a circle');
      const { $ref, ...rest } = schema;
      schema = this.#merge(this.#read(this.#resolve($ref)), rest);
    }
    const { allOf, anyOf, oneOf, ...own } = schema;
    let out: Schema = own;
    if (Array.isArray(allOf)) for (const part of allOf) out = this.#merge(out, this.#flatten(part, depth, hops + 1));
    for (const branches of [anyOf, oneOf]) {
      if (!Array.isArray(branches) || branches.length === 0) continue;
      const given = branches as unknown[];
      const branch = this.#sparing(depth) ? this.#simplest(given) : this.#random.pick(given);
      out = this.#merge(out, this.#flatten(branch, depth, hops + 1));
    }
    return out;
  }

  #sparing(depth: number): boolean {
    return depth >= FULL_DEPTH || this.#values > FULL_VALUES;
  }

  #simplest(branches: unknown[]): unknown {
    this.#budget.spendSteps(branches.length);
    return branches.reduce((a, b) => (this.#simplicity(b) < this.#simplicity(a) ? b : a));
  }

  #simplicity(schema: unknown): number {
    let simplicity = this.#simplicities.get(schema);
    if (simplicity === undefined) {
      const text = JSON.stringify(schema) ?? '';
      this.#budget.spendReading(text.length);
      simplicity = text.length + (text.includes('"$ref"') ? REF_PENALTY_CHARS : 0);
      this.#simplicities.set(schema, simplicity);
    }
    return simplicity;
  }

  /** A schema whose members are then copied. */
  #read(given: unknown): Schema {
    const schema = asSchema(given);
    this.#budget.spendSteps(1 + Object.keys(schema).length);
    return schema;
  }

  #merge(a: Schema, b: Schema): Schema {
    const out = { ...a, ...b };
    if (a['properties'] && b['properties'])
      out['properties'] = { ...asSchema(a['properties']), ...asSchema(b['properties']) };
    if (Array.isArray(a['required']) && Array.isArray(b['required']))
      out['required'] = [...(a['required'] as unknown[]), ...(b['required'] as unknown[])];
    this.#budget.spendSteps(Object.keys(out).length);
    for (const copied of ['properties', 'required'])
      if (out[copied] !== a[copied] && out[copied] !== b[copied])
        this.#budget.spendSteps(Object.keys(out[copied] as object).length);
    return out;
  }

  #resolve(pointer: string): unknown {
    this.#budget.spendReading(pointer.length);
    if (!pointer.startsWith('#')) throw new SchemaError(`$ref ${pointer} leaves the schema`);
    let at: unknown = this.#root;
    for (const part of pointer.split('/').slice(1)) {
      const name = nameIn(part);
      at = typeof at === 'object' && at !== null ? (at as Schema)[name] : undefined;
    }
    if (at === undefined) throw new SchemaError(`$ref ${pointer} leads nowhere`);
    return at;
  }

  #type(schema: Schema, depth: number): unknown {
    const type = schema['type'];
    if (Array.isArray(type)) {
      this.#budget.spendSteps(type.length);
      return this.#sparing(depth) && type.includes('null') ? 'null' : this.#random.pick(type as unknown[]);
    }
    if (type !== undefined) return type;
    if ('properties' in schema || 'required' in schema || 'additionalProperties' in schema) return 'object';
    if ('items' in schema || 'prefixItems' in schema || 'minItems' in schema) return 'array';
    if ('minimum' in schema || 'maximum' in schema || 'multipleOf' in schema) return 'number';
    return 'string';
  }

  #object(schema: Schema, depth: number): Json {
    const properties = asSchema(schema['properties'] ?? {});
    const required = new Set(Array.isArray(schema['required']) ? (schema['required'] as string[]) : []);
    this.#budget.spendSteps(Object.keys(properties).length + required.size);
    const out: Record<string, Json> = {};
    let size = 0;
    const set = (name: string, of: unknown) => {
      this.#budget.spendText(name);
      if (!Object.hasOwn(out, name)) size++;
      Object.defineProperty(out, name, {
        value: this.make(of, depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    };
    for (const [name, property] of Object.entries(properties)) {
      if (property !== false && (!this.#sparing(depth) || required.has(name))) set(name, property);
    }
    const additional = schema['additionalProperties'];
    for (const name of required) if (!Object.hasOwn(out, name)) set(name, additional === false ? true : additional);
    const wanted = typeof schema['minProperties'] === 'number' ? Math.min(schema['minProperties'], MAX_ITEMS) : 0;
    for (let i = 0; size < wanted; i++) set(`field${i}`, additional);
    return out;
  }

  #array(schema: Schema, depth: number): Json {
    const prefix = Array.isArray(schema['prefixItems']) ? (schema['prefixItems'] as unknown[]) : [];
    const least = bound(schema['minItems'], 0);
    const most = Math.min(bound(schema['maxItems'], MAX_ITEMS), MAX_ITEMS);
    const usual = this.#sparing(depth) ? 0 : 1 + this.#random.below(3);
    const closed = schema['items'] === false;
    const length = Math.max(least, Math.min(most, closed ? prefix.length : Math.max(usual, prefix.length)));
    if (length > MAX_ITEMS) throw new SchemaError(`more than ${MAX_ITEMS} items`);
    const unique = schema['uniqueItems'] === true;
    const texts = new Set<string>();
    const out: Json[] = [];
    for (let i = 0; i < length; i++) {
      let item = this.make(i < prefix.length ? prefix[i] : schema['items'], depth + 1);
      if (unique) {
        for (let tries = 0; tries < MAX_DEPTH && texts.has(JSON.stringify(item)); tries++)
          item = this.make(schema['items'], depth + 1);
        const text = JSON.stringify(item);
        if (out.length >= least && texts.has(text)) break;
        texts.add(text);
      }
      out.push(item);
    }
    return out;
  }
}

/** The member that a part of a `$ref` names. */
function nameIn(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    throw new SchemaError(`$ref has the part ${part}, which is no URI`);
  }
}

function asSchema(value: unknown): Schema {
  if (value === true || value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SchemaError('a schema must be an object');
  return value as Schema;
}
