import type { FastifyRequest } from 'fastify';
import { endpointFinder, prefixed, type RouteTable } from '../openapi/route-table';
import { ACCESS_ROUTES } from './routes/access-routes';
import { ACCOUNT_ROUTES } from './routes/account-routes';
import { BACKEND_ROUTES } from './routes/backend-routes';
import { BOOKS_ROUTES } from './routes/books-routes';
import type { OperatorEndpoint } from './endpoint';
import { EXPLAIN_ROUTES } from './routes/explain-routes';
import { OPERATOR_PREFIX } from './prefix';

/** Every route of the port. Routes without a credential (null) are not in the document. */
export const OPERATOR_ROUTES: RouteTable<OperatorEndpoint | null> = {
  ...prefixed<OperatorEndpoint | null>(OPERATOR_PREFIX, {
    ...ACCOUNT_ROUTES,
    ...BOOKS_ROUTES,
    ...EXPLAIN_ROUTES,
    ...BACKEND_ROUTES,
    ...ACCESS_ROUTES,
    '/openapi.yaml': { get: null },
  }),
  '/metrics': { get: null },
  '/livez': { get: null },
  '/readyz': { get: null },
};

const find = endpointFinder(OPERATOR_ROUTES);

/** The endpoint of a request to a guarded route. HEAD has the endpoint of GET. */
export function endpointOf(request: FastifyRequest): OperatorEndpoint {
  return find({ method: request.method, route: request.routeOptions.url! });
}
