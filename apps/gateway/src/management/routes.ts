import type { AuditAction, Scope } from '@tollgate/contracts';
import * as account from '../http/account/schemas';
import type { Endpoint } from '../openapi/operation';
import type { FastifyRequest } from 'fastify';
import { endpointFinder, prefixed, type RouteTable } from '../openapi/route-table';
import type { ManagementErrorCode } from './errors';
import { MANAGEMENT_PREFIX } from './prefix';
import * as answers from './schemas';

export interface ManagementEndpoint extends Endpoint<ManagementErrorCode> {
  /** The scope that the token needs. */
  scope: Scope;
  /** The change that a write makes, in the audit log. */
  change?: AuditAction;
}

const endpoint = (scope: Scope, { description, ...rest }: Omit<ManagementEndpoint, 'scope' | 'tag'>) => ({
  ...rest,
  tag: 'Management API',
  scope,
  description: `${description}\n\nScope: \`${scope}\`.`,
});

/** Every route of the management API. */
export const MANAGEMENT_ROUTES: RouteTable<ManagementEndpoint> = prefixed(MANAGEMENT_PREFIX, {
  '/keys': {
    get: endpoint('keys:read', {
      id: 'listKeys',
      summary: 'List inference keys',
      description: 'Newest first. Shows at most the last four characters of a key.',
      query: account.KeysQuery,
      success: [['200', 'A page of keys.', account.KeyList]],
      errors: ['invalid_parameter'],
    }),
    post: endpoint('keys:write', {
      id: 'createKey',
      change: 'key.create',
      summary: 'Issue an inference key',
      description:
        'Only this answer has the key: store it now. It works at once, or as soon as the credential store is back. ' +
        'After 503 `unavailable` an unusable key may be in the list. Create another one, and revoke the unusable one.',
      body: {
        schema: account.KeyCreate,
        examples: {
          plain: { name: 'backend' },
          expiring: { name: 'trial', profile: 'default', expiresAt: '2027-01-01T00:00:00.000Z' },
        },
      },
      success: [['201', 'The key; it is not shown again.', answers.KeyCreated]],
      errors: [
        'invalid_json',
        'unknown_field',
        'name_required',
        'invalid_name',
        'invalid_profile',
        'invalid_expires_at',
        'invalid_owner',
        'invalid_tags',
        'invalid_models',
        'payload_too_large',
        'unsupported_media_type',
      ],
    }),
  },
  '/keys/{id}': {
    delete: endpoint('keys:write', {
      id: 'revokeKey',
      change: 'key.revoke',
      summary: 'Revoke an inference key',
      description:
        'Takes effect everywhere within a second of the answer. A repeat also answers 204. ' +
        'After 503 `unavailable` the key may still be accepted. Repeat the request until it answers 204.',
      success: [['204', 'Revoked.']],
      errors: ['invalid_json', 'unknown_field', 'not_found', 'payload_too_large', 'unsupported_media_type'],
    }),
  },
  '/usage': {
    get: endpoint('usage:read', {
      id: 'readUsage',
      summary: 'Read usage',
      description: 'Requests, tokens and cost, by the end time of each request. Usage appears within seconds.',
      query: account.UsageQuery,
      success: [['200', 'Usage in total and by group.', account.UsageAnswer]],
      errors: ['invalid_parameter'],
    }),
  },
  '/billing': {
    get: endpoint('billing:read', {
      id: 'readBilling',
      summary: 'Read balance, ledger and invoices',
      description: 'Money is integer cents. `limit` and `after` page through the entries.',
      query: account.BillingQuery,
      success: [['200', 'Balance, a page of entries, and the invoices.', answers.BillingAnswer]],
      errors: ['invalid_parameter'],
    }),
  },
  '/tokens': {
    get: endpoint('tokens:read', {
      id: 'listTokens',
      summary: 'List management tokens',
      description:
        'Newest first, including the calling token. To rotate a token, create a new one with the same scopes in the ' +
        "console under Settings → Management tokens, and use it. When the old token's `lastUsedAt` no longer " +
        'advances, revoke it there.',
      query: account.TokensQuery,
      success: [['200', 'A page of tokens.', account.TokenList]],
      errors: ['invalid_parameter'],
    }),
  },
});

const find = endpointFinder(MANAGEMENT_ROUTES);

/** The endpoint of a request to a guarded route. HEAD has the endpoint of GET. */
export function endpointOf(request: FastifyRequest): ManagementEndpoint {
  return find({ method: request.method, route: request.routeOptions.url! });
}
