import type { FastifyRequest } from 'fastify';

/** The headers of a request in the form of the fetch API. */
export function headersOf({ headers }: Pick<FastifyRequest, 'headers'>): Headers {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const one of [value ?? []].flat()) if (!name.startsWith(':')) all.append(name, one);
  // The body was read, and is sent on as it is.
  for (const name of ['content-length', 'transfer-encoding', 'connection', 'expect']) all.delete(name);
  return all;
}
