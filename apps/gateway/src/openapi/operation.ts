import type { TObject, TSchema } from '@sinclair/typebox';
import { OPERATOR_ERRORS } from '../operator/errors';
import { OperatorError } from '../operator/response-schemas';
import { type JsonObject, queryParameters, ref, refTo } from './open-api';
import { envelopeErrors, errorResponses, jsonResponse } from './responses';

export type Code = keyof typeof OPERATOR_ERRORS;

const ERRORS = envelopeErrors(OPERATOR_ERRORS, OperatorError);
const COMMON: Code[] = [
  'missing_credential',
  'invalid_secret',
  'misdirected_request',
  'too_many_attempts',
  'internal_error',
  'unavailable',
];
const BODY: Code[] = ['invalid_json', 'payload_too_large', 'unsupported_media_type'];

/** One operation of the operator API. */
export interface Endpoint {
  id: string;
  tag: string;
  summary: string;
  description: string;
  query?: TObject;
  /** Form and example of the body. */
  body?: [TSchema, JsonObject];
  /** Status, what it means and its form; absent: 204 without a body. */
  success?: [status: string, description: string, schema: TSchema][];
  errors?: Code[];
}

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  tenantId: 'Id of the tenant.',
  id: 'Id of the key, the token, or the run.',
  entryId: 'Id of a ledger entry.',
  requestId: 'Id of an inference request: its `x-request-id`, unless the caller gave one.',
  accountingNumber: 'Number of the invoice.',
};

function operation(path: string, { id, tag, summary, description, query, body, success, errors = [] }: Endpoint) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    description: PATH_PARAMETERS[name!]!,
    schema: { type: 'string' },
  }));
  const parameters = [...inPath, ...(query ? queryParameters(query) : [])];
  const done = success
    ? Object.fromEntries(success.map(([status, what, schema]) => [status, jsonResponse(what, refTo(schema))]))
    : { '204': { description: 'Done.', headers: { 'x-request-id': ref('headers', 'RequestId') } } };
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: [{ operatorSecret: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: refTo(body[0]), examples: { example: { value: body[1] } } } },
      },
    }),
    responses: { ...done, ...errorResponses(ERRORS, [...errors, ...(body ? BODY : []), ...COMMON]) },
  };
}

/** By path and method. */
export type Paths = Record<string, Partial<Record<'get' | 'post' | 'put' | 'delete', Endpoint>>>;

/** The document's form of them, each path with `prefix` in front. */
export function documented(prefix: string, paths: Paths): JsonObject {
  return Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      prefix + path,
      Object.fromEntries(Object.entries(methods).map(([method, endpoint]) => [method, operation(path, endpoint)])),
    ]),
  );
}
