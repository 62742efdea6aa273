import { body } from '../../openapi/operation';
import type { RouteTable } from '../../openapi/route-table';
import {
  OperatorInvitation,
  OperatorInvitationCreate,
  OperatorRemoval,
  OperatorTokenCreate,
  OperatorTokenIssued,
  OperatorTokenList,
  OperatorTokensQuery,
  PasswordLink,
  PasswordLinkCreate,
} from '../access/access-schemas';
import { ConfigCheck, ConfigChecked } from '../backends/config-schemas';
import type { OperatorEndpoint } from '../endpoint';
import { AuditCsv, AuditExportQuery, AuditPage, AuditPageQuery } from '../access/audit-schemas';

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
      change: 'operator.create',
      summary: 'Create an operator token',
      description:
        'Only this answer has the token: store it now. The operator secret creates the first one. ' +
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
      change: 'operator.revoke',
      summary: 'Revoke an operator token',
      description: 'Takes effect from the moment of the answer. A repeat has the same answer.',
      errors: ['not_found'],
    },
  },
  '/config/check': {
    post: {
      id: 'checkConfig',
      tag: 'Access',
      scope: 'read',
      summary: 'Check whether the services would accept a configuration',
      description:
        'Compares its plans with the profiles of active keys, and its currency with that of the books. ' +
        'Changes nothing.',
      body: body(ConfigCheck, { currency: 'USD', plans: [{ id: 'default', profiles: [{ id: 'default' }] }] }),
      success: [['200', 'Why it would be refused.', ConfigChecked]],
      errors: ['invalid_parameter'],
    },
  },
  '/operator-invitations': {
    post: {
      id: 'inviteOperator',
      tag: 'Access',
      scope: 'operators',
      change: 'operator.invite',
      summary: 'Invite an operator to the console',
      description:
        'Only this answer has the link. The person who opens it can become an operator of the console. It works ' +
        'once, for ten minutes. An operator may do everything, so a token needs all scopes. 503 `unavailable` where ' +
        'no console runs.',
      body: body(OperatorInvitationCreate, { onlyFirst: true }),
      success: [['201', 'The link; it is not shown again.', OperatorInvitation]],
      errors: ['not_found', 'operator_exists'],
    },
  },
  '/console-operators/remove': {
    post: {
      id: 'removeOperator',
      tag: 'Access',
      scope: 'operators',
      change: 'operator.remove',
      summary: 'Revoke the operator role of a person in the console',
      description:
        'In force from the moment of the answer. The account stays, with its roles in tenants. A token needs all ' +
        'scopes. An operator by a group of OpenID Connect is not found: remove the person from the group. 503 ' +
        '`unavailable` where no console runs.',
      body: body(OperatorRemoval, { email: 'anna@example.com' }),
      errors: ['invalid_email', 'not_found', 'last_operator'],
    },
  },
  '/password-links': {
    post: {
      id: 'createPasswordLink',
      tag: 'Access',
      scope: 'operators',
      change: 'recovery.create',
      summary: 'Create a link with which a person sets a new password for the console',
      description:
        'Only this answer has the link. It works once, for an hour, and ends all sessions, passkeys and the second ' +
        'factor of the person. The person may be an operator, so a token needs all scopes. 503 `unavailable` where ' +
        'no console runs.',
      body: body(PasswordLinkCreate, { email: 'anna@example.com' }),
      success: [['201', 'The link; it is not shown again.', PasswordLink]],
      errors: ['invalid_email', 'not_found', 'no_password'],
    },
  },
  '/audit': {
    get: {
      id: 'listAudit',
      tag: 'Access',
      scope: 'read',
      summary: 'List the changes in the audit log',
      description:
        'Newest first: author, change, and where it came from. Each row was committed together with its change. ' +
        'Refused calls, and repeats that change nothing, have no row.',
      query: AuditPageQuery,
      success: [['200', 'A page of changes.', AuditPage]],
      errors: ['invalid_parameter'],
    },
  },
  '/audit/export': {
    get: {
      id: 'exportAudit',
      tag: 'Access',
      scope: 'read',
      summary: 'Export the audit log as CSV',
      description: 'All rows of the filter, newest first, as a stream.',
      query: AuditExportQuery,
      success: [['200', 'A line for each change; `before` and `after` are JSON.', AuditCsv]],
      errors: ['invalid_parameter'],
    },
  },
};
