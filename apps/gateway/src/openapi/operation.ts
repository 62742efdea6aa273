import type { TObject, TSchema } from '@sinclair/typebox';
import { type JsonObject, queryParameters, refTo } from './open-api';
import { type DocumentedErrors, errorResponses, jsonResponse, REQUEST_ID } from './responses';
import { type Method, type RouteTable, routesOf } from './route-table';

/** The documentation of one operation of an account API. */
export interface Endpoint<Code extends string = string> {
  id: string;
  tag: string;
  summary: string;
  description: string;
  query?: TObject;
  body?: { schema: TSchema; examples: Readonly<Record<string, JsonObject>> };
  /** Status, description, and a schema for each media type; without a schema there is no body. Default: 204. */
  success?: readonly (readonly [status: string, description: string, ...schemas: TSchema[]])[];
  errors?: readonly Code[];
}

/** A body with one example. */
export const body = (schema: TSchema, example: JsonObject): NonNullable<Endpoint['body']> => ({
  schema,
  examples: { example },
});

/** What all operations of a surface have in common. */
export interface Surface<E extends Endpoint> {
  errors: DocumentedErrors;
  /** Error codes of every operation. `ofWrites`: further ones of every operation that may have a body. */
  common: readonly string[];
  ofWrites: readonly string[];
  /** Descriptions of the parameters in paths. */
  pathParameters: Readonly<Record<string, string>>;
  /** The credentials that an operation accepts; any of them is enough. */
  security(endpoint: E): JsonObject[];
}

/** The `paths` of a surface's document. */
export function documented<E extends Endpoint>(table: RouteTable<E | null>, surface: Surface<E>): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const { path, method, operation: endpoint } of routesOf(table))
    if (endpoint) (paths[path] ??= {})[method] = operation({ path, method }, endpoint, surface);
  return paths;
}

/** The parameters of a path, such as `{id}`, with their descriptions. */
export function pathParameters(path: string, descriptions: Readonly<Record<string, string>>): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    description: descriptions[name!]!,
    schema: { type: 'string' },
  }));
}

const DONE = [['204', 'Done.']] as const;

function operation<E extends Endpoint>(
  { path, method }: { path: string; method: Method },
  endpoint: E,
  surface: Surface<E>,
): JsonObject {
  const { id, tag, summary, description, query, body, success = DONE, errors = [] } = endpoint;
  const parameters = [...pathParameters(path, surface.pathParameters), ...(query ? queryParameters(query) : [])];
  const codes = [...new Set([...errors, ...(method === 'get' ? [] : surface.ofWrites), ...surface.common])];
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: surface.security(endpoint),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: requestBody(body) }),
    responses: {
      ...Object.fromEntries(success.map(([status, what, ...schemas]) => [status, successResponse(what, schemas)])),
      ...errorResponses(surface.errors, codes),
    },
  };
}

function requestBody({ schema, examples }: NonNullable<Endpoint['body']>): JsonObject {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }] as const);
  return {
    // An absent body is an empty object.
    required: Array.isArray(schema['required']) && schema['required'].length > 0,
    content: { 'application/json': { schema: refTo(schema), examples: Object.fromEntries(values) } },
  };
}

function successResponse(description: string, schemas: readonly TSchema[]): JsonObject {
  const [schema] = schemas;
  const mediaOf = (one: TSchema) => String(one['contentMediaType'] ?? '');
  if (schema && mediaOf(schema) === '') return jsonResponse(description, refTo(schema));
  const content: JsonObject = Object.fromEntries(schemas.map((one) => [mediaOf(one), { schema: refTo(one) }]));
  return {
    description,
    ...(schemas.length > 0 && { content }),
    headers: REQUEST_ID,
  };
}
