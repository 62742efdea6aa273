import { type Json, type JsonObject, ref } from './open-api';
import { REQUEST_ID } from './responses';

interface EarlyAnswer {
  status: number;
  code: string | null;
  message: string;
}

/** Answers before an operation is reached: by the server of the port, or because of the method. */
export const EARLY_ANSWERS: Readonly<Record<string, EarlyAnswer>> = {
  MethodNotAllowed: {
    status: 405,
    code: 'method_not_allowed',
    message: 'This endpoint does not support this method. The Allow header lists the supported ones.',
  },
  RequestTimeout: { status: 408, code: null, message: 'The request did not arrive in time. Send it again.' },
  ExpectationFailed: { status: 417, code: null, message: 'The only supported Expect header is "100-continue".' },
  HeadTooLarge: {
    status: 431,
    code: null,
    message: 'The request headers are too large. Send fewer or shorter ones.',
  },
};

/** The envelope of a surface's early answers. */
export interface EarlyEnvelope {
  /** Precedes the names of the components. */
  prefix: string;
  schema: JsonObject;
  answers: Readonly<Record<string, EarlyAnswer>>;
  /** The example of a body. `code` is null if the answer has no code that all surfaces share. */
  body(answer: EarlyAnswer): JsonObject;
}

/** The envelope `{ error: { code, message } }`. Each operation documents `invalid_request` itself. */
export const accountEnvelope = (prefix: string, schema: JsonObject): EarlyEnvelope => ({
  prefix,
  schema,
  answers: EARLY_ANSWERS,
  body: ({ code, message }) => ({ error: { code: code ?? 'invalid_request', message } }),
});

/** The components that `withEarlyAnswers` refers to. */
export function earlyResponses({ prefix, schema, answers, body }: EarlyEnvelope): JsonObject {
  const response = (answer: EarlyAnswer): JsonObject => ({
    description: answer.message,
    headers: {
      ...REQUEST_ID,
      ...(answer.status === 405 && { Allow: ref('headers', 'Allow') }),
    },
    content: { 'application/json': { schema, examples: { plain: { value: body(answer) } } } },
  });
  return Object.fromEntries(Object.entries(answers).map(([name, answer]) => [prefix + name, response(answer)]));
}

/** The same paths, and each operation with the early answers whose status it does not document itself. */
export function withEarlyAnswers(paths: JsonObject, { prefix, answers }: EarlyEnvelope): JsonObject {
  const early = Object.fromEntries(
    Object.entries(answers).map(([name, { status }]) => [String(status), ref('responses', prefix + name)]),
  );
  const withEarly = (operation: JsonObject): JsonObject => ({
    ...operation,
    responses: sorted({ ...early, ...(operation['responses'] as JsonObject) }),
  });
  return mapValues(paths, (path) => mapValues(path as JsonObject, (operation) => withEarly(operation as JsonObject)));
}

const mapValues = (object: JsonObject, map: (value: Json) => Json): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));

const sorted = (responses: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(responses).sort(([a], [b]) => Number(a) - Number(b)));
