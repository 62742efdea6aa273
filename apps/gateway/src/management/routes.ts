export const MANAGEMENT_PREFIX = '/_api/v1';

/** The surface's routes and the methods of each (HEAD comes with GET): for 405 and `Allow`, and held against the OpenAPI document by a test. */
export const MANAGEMENT_ROUTES: readonly { path: string; methods: readonly string[] }[] = [
  { path: '/keys', methods: ['GET', 'HEAD', 'POST'] },
  { path: '/keys/{id}', methods: ['DELETE'] },
  { path: '/usage', methods: ['GET', 'HEAD'] },
  { path: '/billing', methods: ['GET', 'HEAD'] },
  { path: '/tokens', methods: ['GET', 'HEAD'] },
];

/** The methods of the route that `path` (after the prefix) belongs to; null when there is no such route. */
export function allowedMethods(routes: typeof MANAGEMENT_ROUTES, path: string): readonly string[] | null {
  const parts = path.split('/');
  const route = routes.find((candidate) => {
    const pattern = candidate.path.split('/');
    return (
      pattern.length === parts.length &&
      pattern.every((part, i) => (part.startsWith('{') ? parts[i] !== '' : part === parts[i]))
    );
  });
  return route?.methods ?? null;
}
