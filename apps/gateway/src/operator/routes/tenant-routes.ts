import type { AuditAction } from '@tollgate/contracts';
import { body } from '../../openapi/operation';
import type { RouteTable } from '../../openapi/route-table';
import { type Code, NOT_YET, type OperatorEndpoint } from '../endpoint';
import { TenantRepairAnswer, TenantRepairBody } from '../tenants/repair-schemas';
import * as tenants from '../tenants/tenant-schemas';

const status = (
  id: string,
  change: AuditAction,
  summary: string,
  description: string,
  errors: Code[] = [],
): RouteTable<OperatorEndpoint>[string] => ({
  post: {
    id,
    tag: 'Tenants',
    scope: 'tenants',
    change,
    summary,
    description,
    success: [['200', 'The tenant.', tenants.TenantAnswer]],
    errors: ['not_found', ...errors],
  },
});

/** The routes of tenants. */
export const TENANT_ROUTES: RouteTable<OperatorEndpoint> = {
  '/tenants': {
    get: {
      id: 'listTenants',
      tag: 'Tenants',
      scope: 'read',
      summary: 'List tenants',
      description: 'Newest first. With `externalId`: that tenant, or none.',
      query: tenants.TenantsQuery,
      success: [['200', 'A page of tenants.', tenants.TenantList]],
      errors: ['invalid_parameter'],
    },
    post: {
      id: 'createTenant',
      tag: 'Tenants',
      scope: 'tenants',
      change: 'tenant.create',
      summary: 'Create a tenant',
      description: 'A new tenant has no credit. Requests that cost something are refused until its first top-up.',
      body: body(tenants.TenantCreate, { name: 'Acme', plan: 'default', externalId: 'crm-4711' }),
      success: [['201', 'The tenant.', tenants.TenantAnswer]],
      errors: ['name_required', 'invalid_name', 'invalid_plan', 'invalid_external_id', 'external_id_taken'],
    },
  },
  '/tenants/{tenantId}': {
    get: {
      id: 'readTenant',
      tag: 'Tenants',
      scope: 'read',
      summary: 'Read a tenant',
      description: 'Name, plan and status.',
      success: [['200', 'The tenant.', tenants.TenantAnswer]],
      errors: ['not_found'],
    },
    patch: {
      id: 'updateTenant',
      tag: 'Tenants',
      scope: 'tenants',
      change: 'tenant.update',
      summary: 'Rename a tenant, or change its external id or plan',
      description:
        'The limits of a new plan are in force everywhere within a second of the answer. Running requests continue ' +
        `as they were admitted. ${NOT_YET}`,
      body: body(tenants.TenantUpdate, { plan: 'default', profiles: { batch: 'default' } }),
      success: [['200', 'The tenant.', tenants.TenantAnswer]],
      errors: [
        ...(['not_found', 'tenant_closed', 'name_required', 'invalid_name', 'invalid_external_id'] as const),
        ...(['external_id_taken', 'invalid_plan', 'invalid_profile', 'profiles_missing'] as const),
      ],
    },
  },
  '/tenants/{tenantId}/suspend': status(
    'suspendTenant',
    'tenant.suspend',
    'Suspend a tenant',
    'New requests get 402 `tenant_suspended` from the moment of the answer. Running requests continue to their end. ' +
      `A repeat has the same answer. ${NOT_YET}`,
    ['tenant_closed'],
  ),
  '/tenants/{tenantId}/resume': status(
    'resumeTenant',
    'tenant.resume',
    'Resume a suspended tenant',
    `New requests are admitted from the moment of the answer. A repeat has the same answer. ${NOT_YET}`,
    ['tenant_closed'],
  ),
  '/tenants/{tenantId}/close': status(
    'closeTenant',
    'tenant.close',
    'Close a tenant for good',
    'New requests are refused from the moment of the answer, and all keys and tokens are revoked. Running requests ' +
      'continue to their end. Credit, ledger and invoices stay. Afterwards take the remaining credit out with a ' +
      `refund or an adjustment of \`"all"\`. A repeat has the same answer. ${NOT_YET}`,
  ),
  '/tenants/{tenantId}/erase': status(
    'eraseTenant',
    'tenant.erase',
    'Erase the personal data of a closed tenant',
    'Erases names, external id, owners and tags of the tenant and of its keys and tokens, and the addresses of its ' +
      'people, also from the audit log. Ids, usage, ledger and invoices stay, with the `ref` and `reason` of entries ' +
      'and the `x-request-id` that callers chose. This cannot be undone. A repeat has the same answer. After 503 ' +
      '`unavailable` the audit log may still have names. Repeat the erasure until it succeeds.',
    ['tenant_not_closed'],
  ),
  '/tenants/{tenantId}/repair': {
    post: {
      id: 'repairTenant',
      tag: 'Tenants',
      scope: 'tenants',
      change: 'tenant.repair',
      summary: 'Rebuild the state of a tenant in the admission store from the books',
      description:
        'Rebuilds version, balance, suspension and budgets from the books, and the running sums from the holds. ' +
        'Exact while requests run, and harmless when nothing is wrong.',
      body: body(TenantRepairBody, { dryRun: true }),
      success: [['200', 'The changes, or for a dry run those that it would make.', TenantRepairAnswer]],
      errors: ['not_found'],
    },
  },
};
