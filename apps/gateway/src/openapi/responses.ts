import type { TSchema } from '@sinclair/typebox';
import type { ErrorTable } from '@tollgate/runtime';
import { OWN_ID_HEADER } from '../http/request-id';
import { type JsonObject, ref, refTo } from './open-api';

/** The errors of a surface for its document: the table, and the body of each code. */
export interface DocumentedErrors {
  table: ErrorTable;
  schema: JsonObject;
  body(code: string): JsonObject;
}

/** The errors of a surface with the envelope `{ error: { code, message } }`. */
export const envelopeErrors = (table: ErrorTable, schema: TSchema): DocumentedErrors => ({
  table,
  schema: refTo(schema),
  body: (code) => ({ error: { code, message: table[code]!.message } }),
});

export const REQUEST_ID = {
  'x-request-id': ref('headers', 'RequestId'),
  [OWN_ID_HEADER]: ref('headers', 'OwnRequestId'),
};

/** Headers of an error response, by its status. */
function headersOf(status: number): JsonObject {
  return {
    ...REQUEST_ID,
    ...(status === 409 || status === 429 || status === 503 ? { 'Retry-After': ref('headers', 'RetryAfter') } : {}),
    ...(status === 405 ? { Allow: ref('headers', 'Allow') } : {}),
  };
}

/**
 * The error responses of an operation: codes grouped by status, each with its message and an example.
 * @param known headers of answers to an authenticated caller: all but 401
 */
export function errorResponses(errors: DocumentedErrors, codes: readonly string[], known: JsonObject = {}): JsonObject {
  const byStatus = new Map<number, string[]>();
  for (const code of codes) {
    const { status } = errors.table[code]!;
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const entries = [...byStatus].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    entries.map(([status, ofStatus]) => [
      String(status),
      {
        description: ofStatus.map((code) => `\`${code}\`: ${errors.table[code]!.message}`).join('\n\n'),
        headers: { ...headersOf(status), ...(status === 401 ? {} : known) },
        content: {
          'application/json': {
            schema: errors.schema,
            examples: Object.fromEntries(ofStatus.map((code) => [code, { value: errors.body(code) }])),
          },
        },
      },
    ]),
  );
}

/** A success with a JSON body. */
export function jsonResponse(description: string, schema: JsonObject, headers: JsonObject = {}): JsonObject {
  return { description, headers: { ...REQUEST_ID, ...headers }, content: { 'application/json': { schema } } };
}
