import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import type { JsonObject } from './open-api';

const object = { type: 'object' };
const text = { type: 'string', minLength: 1 };
const reference = { type: 'object', required: ['$ref'], properties: { $ref: text }, additionalProperties: false };
const orReference = (schema: object) => ({ if: { required: ['$ref'] }, then: reference, else: schema });
const mapOf = (schema: object) => ({ type: 'object', additionalProperties: schema });

const content = mapOf({
  type: 'object',
  required: ['schema'],
  properties: { schema: object, examples: mapOf({ type: 'object', required: ['value'] }) },
  additionalProperties: false,
});
const header = {
  type: 'object',
  required: ['schema'],
  properties: { description: text, schema: object },
  additionalProperties: false,
};
const response = {
  type: 'object',
  required: ['description'],
  properties: { description: text, headers: mapOf(orReference(header)), content },
  additionalProperties: false,
};
const parameter = {
  type: 'object',
  required: ['name', 'in', 'schema'],
  properties: {
    name: text,
    in: { enum: ['query', 'path', 'header', 'cookie'] },
    required: { type: 'boolean' },
    description: text,
    style: { enum: ['form', 'simple'] },
    explode: { type: 'boolean' },
    schema: object,
  },
  if: { properties: { in: { const: 'path' } } },
  then: { required: ['required'], properties: { required: { const: true } } },
  additionalProperties: false,
};
const operation = {
  type: 'object',
  required: ['operationId', 'summary', 'description', 'tags', 'security', 'responses'],
  properties: {
    operationId: text,
    summary: text,
    description: text,
    tags: { type: 'array', items: text, minItems: 1 },
    security: { type: 'array', items: mapOf({ type: 'array', items: text }), minItems: 1 },
    parameters: { type: 'array', items: parameter },
    requestBody: {
      type: 'object',
      required: ['content'],
      properties: { description: text, required: { type: 'boolean' }, content },
      additionalProperties: false,
    },
    responses: {
      type: 'object',
      minProperties: 1,
      patternProperties: { '^[1-5]\\d\\d$': orReference(response) },
      additionalProperties: false,
    },
  },
  additionalProperties: false,
};
/** The part of OpenAPI 3.1 that our documents use. Nothing else is allowed. */
const openApi31 = {
  type: 'object',
  required: ['openapi', 'info', 'paths', 'components'],
  properties: {
    openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
    info: {
      type: 'object',
      required: ['title', 'version'],
      properties: {
        title: text,
        version: text,
        description: text,
        license: {
          type: 'object',
          required: ['name'],
          properties: { name: text, identifier: text },
          additionalProperties: false,
        },
      },
      additionalProperties: false,
    },
    servers: { type: 'array', items: { type: 'object', required: ['url'] } },
    tags: { type: 'array', items: { type: 'object', required: ['name'] } },
    paths: {
      type: 'object',
      patternProperties: {
        '^/': {
          type: 'object',
          patternProperties: { '^(get|put|post|delete|patch)$': operation },
          additionalProperties: false,
        },
      },
      additionalProperties: false,
    },
    components: {
      type: 'object',
      properties: {
        schemas: mapOf(object),
        headers: mapOf(header),
        responses: mapOf(response),
        securitySchemes: mapOf({
          type: 'object',
          required: ['type', 'scheme'],
          properties: { type: { const: 'http' }, scheme: { const: 'bearer' } },
        }),
      },
      propertyNames: { enum: ['schemas', 'headers', 'responses', 'securitySchemes'] },
    },
  },
  additionalProperties: false,
};

function everyNode(node: unknown, visit: (node: JsonObject) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if (!Array.isArray(node)) visit(node as JsonObject);
  for (const child of Object.values(node)) everyNode(child, visit);
}

function resolve(document: JsonObject, ref: string): unknown {
  return ref
    .split('/')
    .slice(1)
    .reduce<unknown>((node, part) => (node as JsonObject | undefined)?.[part], document);
}

/** Each operation with its path and method. */
export const operationsOf = (document: JsonObject) =>
  Object.entries(document['paths'] as JsonObject).flatMap(([path, item]) =>
    Object.entries(item as JsonObject).map(([method, value]) => ({ path, method, operation: value as JsonObject })),
  );

/** The checks of every document that we serve. */
export function openApiTests(name: string, document: JsonObject, yaml: string): void {
  describe(name, () => {
    it('has the shape of OpenAPI 3.1', () => {
      const validate = new Ajv2020({ allErrors: true, strict: false }).compile(openApi31);
      validate(document);
      expect(validate.errors).toBeNull();
    });

    it('is unchanged after a round trip through YAML', () => {
      expect(parse(yaml)).toEqual(JSON.parse(JSON.stringify(document)));
    });

    it('resolves every reference', () => {
      const refs = new Set<string>();
      everyNode(document, ({ $ref }) => typeof $ref === 'string' && refs.add($ref));
      expect(refs.size).toBeGreaterThan(20);
      for (const ref of refs) expect([ref, resolve(document, ref)]).toEqual([ref, expect.any(Object)]);
    });

    it('has schemas that compile as JSON Schema 2020-12, and examples that satisfy them', () => {
      const ajv = new Ajv2020({ strict: false });
      addFormats(ajv);
      ajv.addFormat('iso8601', true);
      ajv.addSchema({ ...document, $id: 'doc:tollgate' });
      const valid = (schema: JsonObject, value: unknown) => {
        const check = ajv.compile({ $ref: `doc:tollgate${schema['$ref'] as string}` });
        return check(value) ? [] : check.errors;
      };
      let examples = 0;
      everyNode(document, (node) => {
        const json = (node['content'] as JsonObject | undefined)?.['application/json'] as JsonObject | undefined;
        for (const { value } of Object.values((json?.['examples'] ?? {}) as Record<string, JsonObject>)) {
          expect(valid(json!['schema'] as JsonObject, value)).toEqual([]);
          examples++;
        }
      });
      expect(examples).toBeGreaterThan(60);
    });

    it('has patterns that other languages understand', () => {
      const patterns = new Set<string>();
      everyNode(document, ({ pattern }) => typeof pattern === 'string' && patterns.add(pattern));
      expect(patterns.size).toBeGreaterThan(5);
      // Neither classes of Unicode nor lookaround.
      for (const pattern of patterns) expect(pattern).not.toMatch(/\\p\{|\(\?[=!<]/i);
    });

    it('documents on each operation what is answered before it is reached', () => {
      for (const { operation } of operationsOf(document))
        expect(Object.keys(operation['responses'] as JsonObject)).toEqual(
          expect.arrayContaining(['405', '408', '417', '431']),
        );
    });

    it('gives each operation a unique id', () => {
      const ids = operationsOf(document).map(({ operation: { operationId } }) => operationId);
      expect(new Set(ids).size).toBe(ids.length);
    });
  });
}
