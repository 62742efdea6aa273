import type { Route } from '../openapi/route-table';

export const OPERATOR_PREFIX = '/_operator/v1';

/** The surface's routes and their methods, for 405 and `Allow`. */
export const OPERATOR_ROUTES: readonly Route[] = [
  { path: `${OPERATOR_PREFIX}/tenants`, methods: ['GET', 'HEAD', 'POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/suspend`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/resume`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/repair`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/credit`, methods: ['GET', 'HEAD', 'POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/credit/refund`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/credit/adjust`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/budget`, methods: ['GET', 'HEAD', 'PUT'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/budgets`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/keys/{id}/budget`, methods: ['GET', 'HEAD', 'PUT'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/keys`, methods: ['GET', 'HEAD', 'POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/keys/{id}`, methods: ['DELETE'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/tokens`, methods: ['GET', 'HEAD', 'POST'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/tokens/{id}`, methods: ['DELETE'] },
  { path: `${OPERATOR_PREFIX}/tenants/{tenantId}/usage`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/entries/{entryId}/requests`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/requests/{requestId}`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/invoices`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/invoices/close`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/invoices/{accountingNumber}/void`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/reconcile`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/reconcile/backends`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/reconcile/{id}`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/journal/heads`, methods: ['GET', 'HEAD'] },
  { path: `${OPERATOR_PREFIX}/journal/compare`, methods: ['POST'] },
  { path: `${OPERATOR_PREFIX}/openapi.yaml`, methods: ['GET', 'HEAD'] },
  { path: '/metrics', methods: ['GET', 'HEAD'] },
  { path: '/livez', methods: ['GET', 'HEAD'] },
  { path: '/readyz', methods: ['GET', 'HEAD'] },
];
