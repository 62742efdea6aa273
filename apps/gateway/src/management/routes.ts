import type { Route } from '../openapi/route-table';

export const MANAGEMENT_PREFIX = '/_api/v1';

/** The surface's routes and the methods of each (HEAD comes with GET): for 405 and `Allow`, and held against the OpenAPI document by a test. */
export const MANAGEMENT_ROUTES: readonly Route[] = [
  { path: '/keys', methods: ['GET', 'HEAD', 'POST'] },
  { path: '/keys/{id}', methods: ['DELETE'] },
  { path: '/usage', methods: ['GET', 'HEAD'] },
  { path: '/billing', methods: ['GET', 'HEAD'] },
  { path: '/tokens', methods: ['GET', 'HEAD'] },
];
