import type { JsonObject } from './open-api';
import { ref } from './open-api';

/** An error table in the document's terms: status and message of a code, and the body that it is answered with. */
export interface DocumentedErrors {
  schema: JsonObject;
  status(code: string): number;
  body(code: string): JsonObject;
  message(code: string): string;
}

const REQUEST_ID = { 'x-request-id': ref('headers', 'RequestId') };

/** Headers by the status that they come with. */
function headersOf(status: number): JsonObject {
  return {
    ...REQUEST_ID,
    ...(status === 429 || status === 503 ? { 'Retry-After': ref('headers', 'RetryAfter') } : {}),
    ...(status === 405 ? { Allow: ref('headers', 'Allow') } : {}),
  };
}

/**
 * The error responses of an operation: codes gathered by status, each with its message and an example.
 * @param known headers of the answers to a caller that is known: all but 401
 */
export function errorResponses(errors: DocumentedErrors, codes: readonly string[], known: JsonObject = {}): JsonObject {
  const byStatus = new Map<number, string[]>();
  for (const code of codes) byStatus.set(errors.status(code), [...(byStatus.get(errors.status(code)) ?? []), code]);
  const entries = [...byStatus].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    entries.map(([status, ofStatus]) => [
      String(status),
      {
        description: ofStatus.map((code) => `\`${code}\`: ${errors.message(code)}`).join('\n\n'),
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
