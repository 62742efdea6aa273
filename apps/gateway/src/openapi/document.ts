import { idPattern, REQUEST_ID_PATTERN } from '@tollgate/contracts';
import { earlyResponses } from './early-answers';
import { INFERENCE_EARLY, INFERENCE_PATHS, INFERENCE_SCHEMAS, INFERENCE_SECURITY } from './inference-paths';
import { MANAGEMENT_EARLY, MANAGEMENT_PATHS, MANAGEMENT_SCHEMAS, MANAGEMENT_SECURITY } from './management-paths';
import { type JsonObject, schemaComponents, usedHeaders } from './open-api';
import { yamlOf } from './yaml';

const DESCRIPTION = `\
Model inference behind the OpenAI wire format, billed from prepaid credit. There are two surfaces, each with its own
kind of credential:

| | Inference API | Management API |
|---|---|---|
| Base address | \`/v1\` (also accepted without it) | \`/_api/v1\` |
| Credential | inference key \`sk-svc-…\` | management token \`fma_…\` |
| Purpose | run models | administer the account |

Clients made for the OpenAI wire format work by changing only the base URL and the key.

- Times are ISO 8601 UTC with milliseconds. Money is integer cents.
- Every answer has an \`x-request-id\`. You can send your own if it matches \`[A-Za-z0-9_-]{1,64}\` and does not look
  like a key or token. Our own id, which is unique, is in \`x-tollgate-request-id\`.
- 402 means that the credit or a budget is used up, or that the account is suspended. Retrying does not help.
- The answer of a chat or a completion may be shortened to what the credit or a budget pays for. It then ends with
  \`finish_reason: "length"\`, as at \`max_tokens\`.
- The \`Retry-After\` of a 429 is the time until the same request would be admitted. Your requests that were refused
  earlier come first. If requests in progress have to finish first, the time is an estimate.
- An unknown path is 404. A known path with another method is 405 with \`Allow\`. Both use the envelope of the surface.

The service is pre-launch, and the interface may change.`;

const header = (description: string, schema: JsonObject): JsonObject => ({ description, schema });

export const INFO: JsonObject = { version: '0.1.0', license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } };

/** The headers that answers refer to. */
export const HEADERS: JsonObject = {
  RequestId: header('Names this request in logs and usage events.', {
    type: 'string',
    pattern: REQUEST_ID_PATTERN,
  }),
  OwnRequestId: header('Our own id of this request, which is unique. It names the request in the books.', {
    type: 'string',
    pattern: idPattern('req'),
  }),
  RetryAfter: header('Whole seconds to wait.', { type: 'integer', minimum: 1 }),
  IdempotentReplayed: header(
    'Only if an `Idempotency-Key` was sent and is honoured. `true`: this is the answer to an earlier request.',
    { type: 'boolean' },
  ),
  OriginalRequestId: header(
    'Only if this is the answer to an earlier request: our own id of that request. The repeat is not in the books.',
    { type: 'string', pattern: idPattern('req') },
  ),
  Allow: header('The methods that this path supports.', { type: 'string' }),
  'RateLimit-limit': header('The limit per minute of the key or of the account, whichever would refuse first.', {
    type: 'integer',
  }),
  'RateLimit-remaining': header('The part of that limit that can still be used now.', { type: 'integer' }),
  'RateLimit-reset': header('The time until that limit is full again.', { type: 'string' }),
  'RateLimit-scope': header('Whose limits these are: `key` or `account`, or `requests=…, tokens=…` if they differ.', {
    type: 'string',
    examples: ['key', 'account', 'requests=account, tokens=key'],
  }),
};

/**
 * The OpenAPI 3.1 document of both public surfaces, generated from the schemas that validate requests and the tables of
 * errors.
 */
export function openApiDocument(): JsonObject {
  const paths = { ...INFERENCE_PATHS, ...MANAGEMENT_PATHS };
  const responses = { ...earlyResponses(INFERENCE_EARLY), ...earlyResponses(MANAGEMENT_EARLY) };
  return {
    openapi: '3.1.0',
    info: { ...INFO, title: 'Tollgate', description: DESCRIPTION },
    servers: [{ url: '/', description: 'This server.' }],
    tags: [
      { name: 'Inference API', description: 'Run models.' },
      { name: 'Management API', description: 'Administer the account.' },
    ],
    paths,
    components: {
      securitySchemes: { inferenceKey: INFERENCE_SECURITY, managementToken: MANAGEMENT_SECURITY },
      headers: usedHeaders(HEADERS, paths, responses),
      responses,
      schemas: schemaComponents([...INFERENCE_SCHEMAS, ...MANAGEMENT_SCHEMAS]),
    },
  };
}

export const openApiYaml = yamlOf(openApiDocument);
