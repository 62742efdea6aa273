import { prefixed, type RouteTable } from '../openapi/route-table';
import { ACCOUNT_ROUTES, type OperatorEndpoint } from './account-routes';
import { BOOKS_ROUTES } from './books-routes';
import { OPERATOR_PREFIX } from './prefix';

/** Every route of the port. Routes without the secret (null) are not in the document. */
export const OPERATOR_ROUTES: RouteTable<OperatorEndpoint | null> = {
  ...prefixed<OperatorEndpoint | null>(OPERATOR_PREFIX, {
    ...ACCOUNT_ROUTES,
    ...BOOKS_ROUTES,
    '/openapi.yaml': { get: null },
  }),
  '/metrics': { get: null },
  '/livez': { get: null },
  '/readyz': { get: null },
};
