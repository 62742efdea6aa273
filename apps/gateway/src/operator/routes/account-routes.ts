import type { AuditAction } from '@tollgate/contracts';
import { BillingQuery, KeyCreate, KeysQuery, TokenList, TokensQuery } from '../../http/account/schemas';
import { body, type Endpoint } from '../../openapi/operation';
import type { RouteTable } from '../../openapi/route-table';
import { type Code, NOT_YET, type OperatorEndpoint } from '../endpoint';
import * as keys from '../keys/key-schemas';
import * as answers from '../response-schemas';
import * as requests from '../schemas';
import { TENANT_ROUTES } from './tenant-routes';

const BUDGET: Code[] = ['not_found', 'invalid_budget', 'invalid_thresholds', 'too_many_budgets'];
const MONEY: Code[] = ['not_found', 'invalid_amount', 'invalid_source', 'invalid_ref', 'ref_conflict'];

const KEY_FIELDS: Code[] = [
  ...(['invalid_name', 'invalid_profile', 'invalid_expires_at', 'invalid_owner', 'invalid_tags'] as const),
  'invalid_models',
];

const WORKS =
  'It works at once, or as soon as the credential store is back. After 503 `unavailable` an unusable one may be in ' +
  'the list. Create another one, and revoke the unusable one.';
const REVOKED = (what: 'key' | 'token') =>
  'Takes effect everywhere within a second of the answer. A repeat has the same answer. ' +
  `After 503 \`unavailable\` the ${what} may still be accepted. Repeat the revocation until it succeeds.`;

const budget = (id: string, whose: string): RouteTable<OperatorEndpoint>[string] => ({
  get: {
    id: `read${id}Budget`,
    tag: 'Budgets',
    scope: 'read',
    summary: `Read the monthly budget of ${whose}`,
    description:
      'The budget in force, where it was set, the amount spent, and the thresholds reached in this month (UTC).',
    success: [['200', 'The budget.', answers.BudgetAnswer]],
    errors: ['not_found'],
  },
  put: {
    id: `set${id}Budget`,
    tag: 'Budgets',
    scope: 'credit',
    change: 'budget.set',
    summary: `Set the monthly budget of ${whose}`,
    description: `In force from the moment of the answer. Running streams are not extended beyond it. ${NOT_YET}`,
    body: body(requests.BudgetSet, { monthlyBudgetCents: 10_000, thresholdsPercent: [50, 90] }),
    success: [['200', 'The budget.', answers.BudgetAnswer]],
    errors: BUDGET,
  },
});

const entered = (
  id: string,
  change: AuditAction,
  summary: string,
  description: string,
  form: NonNullable<Endpoint['body']>,
  errors: Code[],
): OperatorEndpoint => ({
  id,
  tag: 'Credit',
  scope: 'credit',
  change,
  summary,
  description,
  body: form,
  success: [
    ['201', 'The ledger entry. For a repeated `ref`, the first one, with `created` false.', answers.EnteredAnswer],
  ],
  errors: [...MONEY, ...errors],
});

/** The routes of tenants, their credit, budgets and credentials. */
export const ACCOUNT_ROUTES: RouteTable<OperatorEndpoint> = {
  ...TENANT_ROUTES,
  '/tenants/{tenantId}/credit': {
    get: {
      id: 'readCredit',
      tag: 'Credit',
      scope: 'read',
      summary: 'Read balance, ledger and invoices',
      description: 'Balance and entries are of the same moment.',
      query: BillingQuery,
      success: [['200', 'Balance, a page of entries, and the invoices.', answers.CreditAnswer]],
      errors: ['not_found', 'invalid_parameter'],
    },
    post: entered(
      'addCredit',
      'credit.add',
      'Top up',
      'If the answer is lost, repeat the call with the same `ref`. A closed tenant takes no credit.',
      body(requests.CreditAdd, { amountCents: 2_500, source: 'stripe', ref: 'pi_4711' }),
      ['tenant_closed'],
    ),
  },
  '/tenants/{tenantId}/credit/refund': {
    post: entered(
      'refundCredit',
      'credit.refund',
      'Refund credit',
      'At most the available credit: the balance less used credit and credit in use. `all` for a closed tenant ' +
        'without running requests leaves a balance of zero. If usage took a part of the last cent, an adjustment ' +
        'writes that cent off before the refund, or instead of it if nothing else is left.',
      body(requests.CreditRefund, { amountCents: 1_000, ref: 're_4711', reason: 'closed account' }),
      ['invalid_reason', 'insufficient_credit'],
    ),
  },
  '/tenants/{tenantId}/credit/adjust': {
    post: entered(
      'adjustCredit',
      'credit.adjust',
      'Correct the balance, up or down',
      'A decrease is limited like a refund, unless `allowDebt` is true. `all` for a closed tenant without running ' +
        'requests also takes the last cent if usage took a part of it.',
      body(requests.CreditAdjust, { amountCents: -500, ref: 'dispute-3', reason: 'chargeback', allowDebt: true }),
      ['invalid_reason', 'insufficient_credit'],
    ),
  },
  '/tenants/{tenantId}/budget': budget('Tenant', 'a tenant'),
  '/tenants/{tenantId}/budgets': {
    get: {
      id: 'listBudgets',
      tag: 'Budgets',
      scope: 'read',
      summary: 'List the keys that have their own budget',
      description: 'Ascending by key id.',
      query: KeysQuery,
      success: [['200', 'A page of budgets.', answers.BudgetList]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
  '/tenants/{tenantId}/keys/{id}/budget': budget('Key', 'a key'),
  '/tenants/{tenantId}/keys': {
    get: {
      id: 'listKeys',
      tag: 'Credentials',
      scope: 'read',
      summary: 'List inference keys',
      description: 'Newest first.',
      query: KeysQuery,
      success: [['200', 'A page of keys.', keys.OperatorKeyList]],
      errors: ['not_found', 'invalid_parameter'],
    },
    post: {
      id: 'createKey',
      tag: 'Credentials',
      scope: 'keys',
      change: 'key.create',
      summary: 'Issue an inference key',
      description: `Only this answer has the key: store it now. ${WORKS}`,
      body: body(KeyCreate, { name: 'backend' }),
      success: [['201', 'The key; it is not shown again.', keys.OperatorKeyCreated]],
      errors: ['not_found', 'tenant_closed', 'name_required', ...KEY_FIELDS],
    },
  },
  '/tenants/{tenantId}/keys/apply': {
    post: {
      id: 'applyKeys',
      tag: 'Credentials',
      scope: 'keys',
      change: 'key.create',
      summary: 'Apply a list of inference keys',
      description:
        'All or none: creates the keys of the list that the tenant lacks, by name, and changes those that differ. ' +
        'Revoked keys do not count. Only this answer has the new keys: store them now. Each change has a row in the ' +
        'audit log.',
      body: body(keys.KeysApply, { keys: [{ name: 'backend', owner: 'team-search', tags: ['batch'] }], dryRun: true }),
      success: [['200', 'What was changed, or for a dry run would be.', keys.KeysApplied]],
      errors: ['not_found', 'tenant_closed', 'invalid_keys', 'ambiguous_name', 'name_required', ...KEY_FIELDS],
    },
  },
  '/tenants/{tenantId}/keys/{id}/rotate': {
    post: {
      id: 'rotateKey',
      tag: 'Credentials',
      scope: 'keys',
      change: 'key.rotate',
      summary: 'Rotate the secret of an inference key',
      description:
        'The key keeps its id, its usage and its budget. Former secrets are accepted until the grace time ends. ' +
        'Only this answer has the next secret: store it now. After 503 `unavailable` rotate again.',
      body: body(keys.KeyRotate, { graceSeconds: 86_400 }),
      success: [['200', 'The key with its next secret; it is not shown again.', keys.OperatorKeyCreated]],
      errors: ['not_found', 'tenant_closed', 'key_revoked', 'invalid_grace'],
    },
  },
  '/tenants/{tenantId}/keys/{id}': {
    patch: {
      id: 'updateKey',
      tag: 'Credentials',
      scope: 'keys',
      change: 'key.update',
      summary: 'Change an inference key',
      description:
        'Changes name, profile, expiry, owner, tags or models. In force everywhere within a second of the answer. ' +
        'Running requests continue as they were admitted. A revoked key stays revoked. The keys of an erased tenant ' +
        `do not change. ${NOT_YET}`,
      body: body(keys.KeyUpdate, { owner: 'team-search', tags: ['batch'] }),
      success: [['200', 'The key.', keys.OperatorKeyAnswer]],
      errors: ['not_found', 'tenant_closed', 'name_required', ...KEY_FIELDS],
    },
    delete: {
      id: 'revokeKey',
      tag: 'Credentials',
      scope: 'keys',
      change: 'key.revoke',
      summary: 'Revoke an inference key',
      description: REVOKED('key'),
      errors: ['not_found'],
    },
  },
  '/tenants/{tenantId}/tokens': {
    get: {
      id: 'listTokens',
      tag: 'Credentials',
      scope: 'read',
      summary: 'List management tokens',
      description: 'Newest first.',
      query: TokensQuery,
      success: [['200', 'A page of tokens.', TokenList]],
      errors: ['not_found', 'invalid_parameter'],
    },
    post: {
      id: 'createToken',
      tag: 'Credentials',
      scope: 'keys',
      change: 'token.create',
      summary: 'Create a management token',
      description: `Only this answer has the token: store it now. Scopes do not imply one another. ${WORKS}`,
      body: body(requests.TokenCreate, { name: 'ops', scopes: ['usage:read', 'billing:read'] }),
      success: [['201', 'The token; it is not shown again.', answers.OperatorTokenCreated]],
      errors: ['not_found', 'tenant_closed', 'name_required', 'invalid_name', 'invalid_scope', 'invalid_expires_at'],
    },
  },
  '/tenants/{tenantId}/tokens/{id}': {
    delete: {
      id: 'revokeToken',
      tag: 'Credentials',
      scope: 'keys',
      change: 'token.revoke',
      summary: 'Revoke a management token',
      description: REVOKED('token'),
      errors: ['not_found'],
    },
  },
};
