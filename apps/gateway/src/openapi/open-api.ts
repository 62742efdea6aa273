import type { TObject, TSchema } from '@sinclair/typebox';

/** The parts of an OpenAPI 3.1 document that we write. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export const ref = (kind: 'schemas' | 'headers' | 'responses', name: string): JsonObject => ({
  $ref: `#/components/${kind}/${name}`,
});

/** The schemas among a module's exports that have a name (`$id`). */
export function namedSchemas(...modules: object[]): TSchema[] {
  return modules
    .flatMap((module) => Object.values(module) as unknown[])
    .filter((value): value is TSchema => typeof value === 'object' && value !== null && '$id' in value);
}

/** A reference to the component of a schema, which is named by its `$id`. */
export function refTo(schema: TSchema): JsonObject {
  if (schema.$id === undefined) throw new Error('only a schema with $id is a component');
  return ref('schemas', schema.$id);
}

/** `components.schemas`: each schema under its `$id`, with those inside it as references. */
export function schemaComponents(schemas: readonly TSchema[]): JsonObject {
  return Object.fromEntries(schemas.map((schema) => [schema.$id!, toJsonSchema(schema, true)]));
}

/** Query parameters from the schema that validates them. Lists are comma-separated. */
export function queryParameters(schema: TObject): Json[] {
  return Object.entries(schema.properties).map(([name, property]) => {
    const { description, ...rest } = toJsonSchema(property, true) as JsonObject;
    const list = rest['type'] === 'array' ? { style: 'form', explode: false } : {};
    return {
      name,
      in: 'query',
      required: schema.required?.includes(name) === true && !('default' in property),
      ...(description !== undefined && { description }),
      ...list,
      schema: rest,
    };
  });
}

/**
 * A TypeBox schema as plain JSON Schema (2020-12, as in OpenAPI 3.1). `$id` is removed, because it would change the
 * base of the references. An inner schema with `$id` becomes a reference. A union of constants becomes an `enum`.
 * Patterns become portable.
 */
function toJsonSchema(value: unknown, top = false): Json {
  if (Array.isArray(value)) return value.map((item) => toJsonSchema(item));
  if (typeof value !== 'object' || value === null) return value as Json;
  const schema = value as Record<string, unknown>;
  if (!top && typeof schema['$id'] === 'string') return ref('schemas', schema['$id']);
  const { $id, anyOf, ...rest } = schema;
  void $id;
  const choice = Array.isArray(anyOf) ? constants(anyOf) : null;
  const own = choice ? { type: 'string', enum: choice, ...rest } : anyOf === undefined ? rest : { anyOf, ...rest };
  const entries = Object.entries(own).map(([key, inner]) =>
    key === 'pattern' && typeof inner === 'string' ? [key, portablePattern(inner)] : [key, toJsonSchema(inner)],
  );
  return Object.fromEntries(entries) as JsonObject;
}

/** The characters of classes of Unicode below U+10000, as ranges. Text in UTF-8 has no lone surrogates. */
const CLASSES: Readonly<Record<string, string>> = {
  Cc: '\\x00-\\x1f\\x7f-\\x9f',
  Cf: '\\xad\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff',
  Cs: '',
  Zl: '\\u2028',
  Zp: '\\u2029',
};

/** The pattern without `\\p{…}`, which many languages do not have. It may accept a few rare characters more. */
function portablePattern(pattern: string): string {
  return pattern.replace(/\\p\{(\w+)\}/g, (_, name: string) => {
    const ranges = name === 'C' ? `${CLASSES['Cc']}${CLASSES['Cf']}` : CLASSES[name];
    if (ranges === undefined) throw new Error(`the class ${name} has no portable ranges`);
    return ranges;
  });
}

/** The `headers` to which a part of the document refers. */
export function usedHeaders(headers: JsonObject, ...parts: JsonObject[]): JsonObject {
  const text = JSON.stringify(parts);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => text.includes(`"#/components/headers/${name}"`)),
  );
}

function constants(anyOf: unknown[]): string[] | null {
  const values = anyOf.map((option) => (option as { const?: unknown }).const);
  return values.every((value) => typeof value === 'string') ? values : null;
}
