import Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { valueFor } from './json-value';
import { SchemaError } from './schema-error';

const ajv = addFormats(new Ajv({ strict: false, allErrors: true }));

const TREE = {
  type: 'object',
  properties: { label: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
  required: ['label', 'children'],
  additionalProperties: false,
  $defs: { node: { $ref: '#' } },
};

const SCHEMAS: Record<string, object | boolean> = {
  'flat object': {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
    required: ['city', 'days'],
    additionalProperties: false,
  },
  'enum and const': {
    type: 'object',
    properties: { unit: { enum: ['c', 'f'] }, kind: { const: 'weather' }, emoji: { enum: ['☀️', '🌧'] } },
    required: ['unit', 'kind', 'emoji'],
  },
  'number bounds': {
    type: 'object',
    properties: {
      a: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.1 },
      b: { type: 'integer', exclusiveMinimum: 4, maximum: 5 },
      c: { type: 'number', multipleOf: 0.5, minimum: -3, maximum: -1 },
      d: { type: 'integer', maximum: -1000 },
      e: { type: 'integer', minimum: 1234567890123456 },
      f: { type: 'integer', exclusiveMinimum: 1e10 },
      g: { type: 'number', maximum: -7 },
      h: { type: 'number' },
      i: { type: 'number', minimum: 0.3, maximum: 0.3 },
      j: { type: 'integer', multipleOf: 0.5, minimum: 0.5, maximum: 1.5 },
      k: { type: 'integer', multipleOf: 2.5, minimum: 3 },
      l: { type: 'integer', multipleOf: 0.01 },
      m: { type: 'integer', multipleOf: 1e-12, maximum: 5 },
    },
    required: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'],
  },
  'string bounds': {
    type: 'object',
    properties: {
      short: { type: 'string', maxLength: 3 },
      long: { type: 'string', minLength: 200 },
      code: { type: 'string', pattern: '^[A-Z]{3}-\\d{4}$' },
    },
    required: ['short', 'long', 'code'],
  },
  formats: {
    type: 'object',
    properties: Object.fromEntries(
      ['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'].map((format) => [
        format,
        { type: 'string', format },
      ]),
    ),
  },
  arrays: {
    type: 'object',
    properties: {
      some: { type: 'array', items: { type: 'boolean' }, minItems: 5, maxItems: 6 },
      none: { type: 'array', maxItems: 0 },
      tags: { type: 'array', items: { enum: ['a', 'b', 'c'] }, uniqueItems: true, minItems: 2 },
    },
  },
  nullable: { type: ['string', 'null'] },
  'any of': {
    anyOf: [
      { type: 'integer' },
      { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] },
      { type: 'null' },
    ],
  },
  'all of': {
    allOf: [
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      { properties: { b: { type: 'integer' } }, required: ['b'] },
    ],
  },
  'required but not declared': { type: 'object', required: ['whatever'], additionalProperties: { type: 'integer' } },
  'map of at least two': { type: 'object', minProperties: 2, additionalProperties: { type: 'string' } },
  '__proto__ as a name': {
    type: 'object',
    properties: JSON.parse('{"__proto__":{"type":"integer"}}') as object,
    required: ['__proto__'],
  },
  'recursive list': TREE,
  'recursive branch': {
    type: 'object',
    properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
    required: ['next'],
    additionalProperties: false,
  },
  'recursive and wide': {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`p${i}`, { $ref: '#' }])),
    additionalProperties: false,
  },
  definitions: {
    $ref: '#/definitions/point',
    definitions: {
      point: { type: 'object', properties: { x: { type: 'number' }, y: { type: 'number' } }, required: ['x', 'y'] },
    },
  },
  'anything at all': true,
};

describe('a value for a JSON schema', () => {
  it.each(Object.entries(SCHEMAS))('is valid and the same for the same seed: %s', (_name, schema) => {
    const validate = ajv.compile(schema);
    for (let seed = 0; seed < 50; seed++) {
      const value = valueFor(schema, seed);
      if (!validate(JSON.parse(JSON.stringify(value))))
        throw new Error(`${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`);
      expect(valueFor(schema, seed)).toEqual(value);
      expect(JSON.stringify(value).length).toBeLessThan(100_000);
    }
  });

  it.each<[string, object]>([
    ['with a circular reference', { $ref: '#' }],
    ['with a circular branch', { anyOf: [{ $ref: '#' }] }],
    ['with an empty enum', { enum: [] }],
    ['with a step of 0', { type: 'number', multipleOf: 0 }],
    ['with an invalid pattern', { type: 'string', pattern: '[' }],
    ['that requires itself', { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] }],
    ['with a reference to nothing', { $ref: '#/$defs/none' }],
    ['with a reference that is no URI', { $ref: '#/%zz' }],
    ['that no number satisfies', { type: 'integer', minimum: 5, maximum: 4 }],
    ['whose numbers are too large to count', { type: 'number', minimum: 1e308 }],
    ['whose multiples are infinite', { type: 'number', minimum: 1.5e308, multipleOf: 1e308 }],
    ['of an unknown type', { type: 'text' }],
    ['with an unsupported pattern', { type: 'string', pattern: '^(?=.*\\d)(?=.*[a-z])$' }],
  ])('is refused for a schema %s', (_name, schema) => {
    expect(() => valueFor(schema, 1)).toThrow(SchemaError);
  });

  const many = { type: 'array', minItems: 1_000 };
  const twice = (ref: string) => ({ allOf: [{ $ref: ref }, { $ref: ref }] });
  const names = Array.from({ length: 4_000 }, (_, i) => `p${i}`);
  const properties = Object.fromEntries(names.map((name) => [name, {}]));
  it.each<[string, object]>([
    ['of arrays in arrays in arrays', { ...many, items: { ...many, items: { ...many, items: { type: 'null' } } } }],
    ['of arrays of anything', { ...many, items: { ...many, items: true } }],
    ['whose references double at each level', twice('#')],
    ['whose branches double at each level', { anyOf: [twice('#')] }],
    ['that repeats a long text', { ...many, items: { const: 'a'.repeat(1_000) } }],
    ['with one long text', { enum: ['a'.repeat(1_000_000)] }],
    ['with a long name', { required: ['a'.repeat(1_000_000)] }],
    ['that repeats a long pattern', { ...many, items: { ...many, items: { pattern: '[a-z]'.repeat(200) } } }],
    ['with long strings', { ...many, items: { type: 'string', minLength: 10_000 } }],
    ['with a long reference in each item', { ...many, items: { $ref: `#/${'x/'.repeat(1_000_000)}` } }],
    ['that merges many properties again and again', { allOf: Array.from({ length: 10_000 }, () => ({ properties })) }],
    [
      'that requires many names again and again',
      { allOf: Array.from({ length: 10_000 }, () => ({ required: names })) },
    ],
    ['of more distinct items than exist', { ...many, uniqueItems: true, items: { type: 'boolean' } }],
    [
      'with large branches in each item',
      { ...many, items: { ...many, items: { anyOf: Array.from({ length: 100_000 }, () => ({ type: 'null' })) } } },
    ],
    ['with many types in each item', { ...many, items: { ...many, items: { type: Array(100_000).fill('integer') } } }],
  ])('is refused, and not tried to its end, for a schema %s', (_name, schema) => {
    expect(() => valueFor(schema, 1)).toThrow(SchemaError);
  });

  it.each(['valueOf', '__proto__', 'constructor'])('has any text for the unknown format %s', (format) => {
    expect(valueFor({ type: 'string', format }, 1)).toEqual(expect.any(String));
  });
});
