import { prefixed, type RouteTable, routesOf } from '../openapi/route-table';
import { ACCESS_ROUTES } from './access-routes';
import { ACCOUNT_ROUTES } from './account-routes';
import { BOOKS_ROUTES } from './books-routes';
import type { OperatorEndpoint } from './endpoint';
import { OPERATOR_PREFIX } from './prefix';

/** Every route of the port. Routes without a credential (null) are not in the document. */
export const OPERATOR_ROUTES: RouteTable<OperatorEndpoint | null> = {
  ...prefixed<OperatorEndpoint | null>(OPERATOR_PREFIX, {
    ...ACCOUNT_ROUTES,
    ...BOOKS_ROUTES,
    ...ACCESS_ROUTES,
    '/openapi.yaml': { get: null },
  }),
  '/metrics': { get: null },
  '/livez': { get: null },
  '/readyz': { get: null },
};

const ENDPOINTS = new Map(
  routesOf(OPERATOR_ROUTES).map(({ path, method, operation }) => [
    `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    operation,
  ]),
);

/** The endpoint of a route as Fastify names it (`/tenants/:tenantId`). HEAD is that of GET. */
export function endpointOf({ method, route }: { method: string; route: string }): OperatorEndpoint {
  const endpoint = ENDPOINTS.get(`${method === 'HEAD' ? 'get' : method.toLowerCase()} ${route}`);
  if (!endpoint) throw new Error(`${method} ${route} is guarded, but not in the table of routes`);
  return endpoint;
}
