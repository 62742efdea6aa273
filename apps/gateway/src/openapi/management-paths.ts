import { SCOPES, type Scope } from '@tollgate/contracts';
import { MANAGEMENT_ERRORS, type ManagementErrorCode } from '../management/errors';
import { MANAGEMENT_PREFIX } from '../management/routes';
import * as answers from '../management/schemas';
import * as account from '../http/account/schemas';
import { type JsonObject, namedSchemas, queryParameters, ref, refTo } from './open-api';
import { envelopeErrors, errorResponses, jsonResponse } from './responses';

/** Every schema of the management API that has a name. */
export const MANAGEMENT_SCHEMAS = namedSchemas(account, answers);

const ERRORS = envelopeErrors(MANAGEMENT_ERRORS, answers.ManagementErrorBody);

/** What every endpoint can answer. */
const COMMON: ManagementErrorCode[] = [
  'missing_credential',
  'invalid_token',
  'token_expired',
  'token_revoked',
  'inference_key_not_accepted',
  'insufficient_scope',
  'rate_limited',
  'internal_error',
  'unavailable',
];

interface Endpoint {
  id: string;
  scope: Scope;
  summary: string;
  description?: string;
  rest?: JsonObject;
  success: JsonObject;
  errors?: ManagementErrorCode[];
}

function operation({ id, scope, summary, description = '', rest = {}, success, errors = [] }: Endpoint): JsonObject {
  return {
    operationId: id,
    tags: ['Management API'],
    summary,
    description: `${description}\n\nScope: \`${scope}\`.`.trim(),
    // Scopes are allowed for any security scheme since 3.1.
    security: [{ managementToken: [scope] }],
    ...rest,
    responses: { ...success, ...errorResponses(ERRORS, [...errors, ...COMMON]) },
  };
}

const example = (value: JsonObject) => ({ value });

/** The six endpoints, from the schemas that validate and the table that answers. */
export const MANAGEMENT_PATHS: JsonObject = {
  [`${MANAGEMENT_PREFIX}/keys`]: {
    get: operation({
      id: 'listKeys',
      scope: 'keys:read',
      summary: 'List inference keys',
      description: 'Newest first. Shows at most the last four characters of a key.',
      rest: { parameters: queryParameters(account.KeysQuery) },
      success: { '200': jsonResponse('A page of keys.', refTo(account.KeyList)) },
      errors: ['invalid_parameter'],
    }),
    post: operation({
      id: 'createKey',
      scope: 'keys:write',
      summary: 'Issue an inference key',
      description:
        'Only this answer has the key: store it now. It works at once, or as soon as the credential store is back. After 503 ' +
        '`unavailable` an unusable key may be in the list. Create another one, and revoke the unusable one.',
      rest: {
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: refTo(account.KeyCreate),
              examples: {
                plain: example({ name: 'backend' }),
                expiring: example({ name: 'trial', profile: 'default', expiresAt: '2027-01-01T00:00:00.000Z' }),
              },
            },
          },
        },
      },
      success: { '201': jsonResponse('The key, this once.', refTo(answers.KeyCreated)) },
      errors: [
        'invalid_json',
        'name_required',
        'invalid_name',
        'invalid_profile',
        'invalid_expires_at',
        'payload_too_large',
        'unsupported_media_type',
      ],
    }),
  },
  [`${MANAGEMENT_PREFIX}/keys/{id}`]: {
    delete: operation({
      id: 'revokeKey',
      scope: 'keys:write',
      summary: 'Revoke an inference key',
      description:
        'In force everywhere within a second of the answer. A key that is revoked already: 204 again. 503 `unavailable`: the revocation may be recorded, and the key may still be ' +
        'accepted; repeat the request until it is answered with 204.',
      rest: {
        parameters: [
          { name: 'id', in: 'path', required: true, description: 'Id of the key.', schema: { type: 'string' } },
        ],
      },
      success: { '204': { description: 'Revoked.', headers: { 'x-request-id': ref('headers', 'RequestId') } } },
      errors: ['not_found'],
    }),
  },
  [`${MANAGEMENT_PREFIX}/usage`]: {
    get: operation({
      id: 'readUsage',
      scope: 'usage:read',
      summary: 'Read usage',
      description: 'Requests, tokens and cost, by the end time of each request. Usage appears within seconds.',
      rest: { parameters: queryParameters(account.UsageQuery) },
      success: { '200': jsonResponse('Sums in total and per group.', refTo(account.UsageAnswer)) },
      errors: ['invalid_parameter'],
    }),
  },
  [`${MANAGEMENT_PREFIX}/billing`]: {
    get: operation({
      id: 'readBilling',
      scope: 'billing:read',
      summary: 'Read balance, ledger and receipts',
      description: 'Money is integer cents. `limit` and `after` page through the entries.',
      rest: { parameters: queryParameters(account.BillingQuery) },
      success: { '200': jsonResponse('Balance, a page of entries, and the receipts.', refTo(answers.BillingAnswer)) },
      errors: ['invalid_parameter'],
    }),
  },
  [`${MANAGEMENT_PREFIX}/tokens`]: {
    get: operation({
      id: 'listTokens',
      scope: 'tokens:read',
      summary: 'List management tokens',
      description:
        'Newest first, the calling one among them. To rotate: have a replacement made with the same scopes, move over to it, see that the old ' +
        "token's `lastUsedAt` no longer advances, have the old one revoked.",
      rest: { parameters: queryParameters(account.TokensQuery) },
      success: { '200': jsonResponse('A page of tokens.', refTo(account.TokenList)) },
      errors: ['invalid_parameter'],
    }),
  },
};

export const MANAGEMENT_SECURITY = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'fma_…',
  description: `A management token. It belongs to one tenant and carries scopes, which do not imply one another: ${SCOPES.join(', ')}.`,
};
