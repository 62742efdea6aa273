/** A parameter at the end of a path that matches the whole rest, slashes included: the id of a model. */
export const REST_OF_PATH = '{model}';

/** In the order of the `Allow` header. */
const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
export type Method = (typeof METHODS)[number];

/**
 * The one table of the routes of a surface: the documentation of each operation by path and method, or null if the
 * document leaves it out. The document, `Allow` and 405 answers are made from it. A test compares it with the routes
 * that the controllers bind.
 */
export type RouteTable<Operation> = Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;

/** The same routes with `prefix` in front of each path. */
export function prefixed<Operation>(prefix: string, table: RouteTable<Operation>): RouteTable<Operation> {
  return Object.fromEntries(Object.entries(table).map(([path, methods]) => [prefix + path, methods]));
}

/** The routes of a table as a list. */
export function routesOf<Operation>(
  table: RouteTable<Operation>,
): { path: string; method: Method; operation: Operation }[] {
  return Object.entries(table).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method] !== undefined).map((method) => ({
      path,
      method,
      operation: methods[method] as Operation,
    })),
  );
}

/** Finds the endpoint of a route as Fastify names it (`/tenants/:tenantId`). HEAD has the endpoint of GET. */
export function endpointFinder<Operation>(
  table: RouteTable<Operation>,
): (bound: { method: string; route: string }) => NonNullable<Operation> {
  const endpoints = new Map(
    routesOf(table).map(({ path, method, operation }) => [`${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`, operation]),
  );
  return ({ method, route }) => {
    const endpoint = endpoints.get(`${method === 'HEAD' ? 'get' : method.toLowerCase()} ${route}`);
    if (!endpoint) throw new Error(`${method} ${route} is guarded, but not in the table of routes`);
    return endpoint;
  };
}

/**
 * The value of `Allow` for the first route that matches `path`: its methods, and HEAD with GET. Null if there is no
 * such route, or if the path cannot be decoded.
 */
export function allowedMethods(table: RouteTable<unknown>, path: string): string | null {
  const parts = decoded(path);
  if (parts === null) return null;
  const found = Object.entries(table).find(([pattern]) => fits(parts, pattern.split('/')));
  if (!found) return null;
  const methods = METHODS.filter((method) => found[1][method] !== undefined);
  return methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');
}

/** The parts of a path, as Fastify's router decodes them: an escaped slash separates nothing. */
function decoded(path: string): string[] | null {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    return null;
  }
}

function fits(parts: readonly string[], pattern: readonly string[]): boolean {
  const takesRest = pattern.at(-1) === REST_OF_PATH && parts.length > pattern.length;
  return (
    (takesRest || pattern.length === parts.length) &&
    pattern.every((part, at) => (part.startsWith('{') ? parts[at] !== '' : part === parts[at]))
  );
}
