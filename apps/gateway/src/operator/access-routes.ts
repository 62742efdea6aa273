import { body } from '../openapi/operation';
import type { RouteTable } from '../openapi/route-table';
import { OperatorTokenCreate, OperatorTokenIssued, OperatorTokenList, OperatorTokensQuery } from './access-schemas';
import type { OperatorEndpoint } from './account-routes';

/** The routes of those who operate Tollgate. */
export const ACCESS_ROUTES: RouteTable<OperatorEndpoint> = {
  '/operator-tokens': {
    get: {
      id: 'listOperatorTokens',
      tag: 'Access',
      scope: 'read',
      summary: 'List operator tokens',
      description: 'Newest first.',
      query: OperatorTokensQuery,
      success: [['200', 'A page of tokens.', OperatorTokenList]],
      errors: ['invalid_parameter'],
    },
    post: {
      id: 'createOperatorToken',
      tag: 'Access',
      scope: 'operators',
      summary: 'Create an operator token',
      description:
        'Only this answer has the token: store it now. The operator secret makes the first one. ' +
        'A token can only grant scopes that it has. It is in force from the moment of the answer.',
      body: body(OperatorTokenCreate, { name: 'billing-job', scopes: ['read', 'credit'] }),
      success: [['201', 'The token; it is not shown again.', OperatorTokenIssued]],
      errors: ['name_required', 'invalid_name', 'invalid_scope', 'invalid_expires_at', 'name_taken'],
    },
  },
  '/operator-tokens/{id}': {
    delete: {
      id: 'revokeOperatorToken',
      tag: 'Access',
      scope: 'operators',
      summary: 'Revoke an operator token',
      description: 'Takes effect from the moment of the answer. A repeat has the same answer.',
      errors: ['not_found'],
    },
  },
};
