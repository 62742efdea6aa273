const PREFIX = '/console/api';
const UNAUTHENTICATED = 401;

/** An error of the backend, as people see it: what happened, what to do, and the id to ask about. */
export class ApiFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null,
  ) {
    super(message);
    this.name = 'ApiFailure';
  }
}

/** Whether the person has to sign in first. */
export const isSignedOut = (error: unknown): boolean =>
  error instanceof ApiFailure && error.status === UNAUTHENTICATED && error.code === 'unauthenticated';

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(PREFIX + path, {
      method,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiFailure(0, 'unreachable', 'The console does not answer. Check your connection and try again.', null);
  }
  if (answer.status === 204) return undefined as T;
  const value = (await answer.json().catch(() => null)) as unknown;
  if (answer.ok) return value as T;
  const { error } = (value ?? {}) as { error?: { code: string; message: string; requestId: string } };
  const fallback = `The console answered ${answer.status}. Try again shortly.`;
  throw new ApiFailure(
    answer.status,
    error?.code ?? 'internal_error',
    error?.message ?? fallback,
    error?.requestId ?? answer.headers.get('x-request-id'),
  );
}

/** The backend of the console. Every call rejects with ApiFailure. */
export const api = {
  get: <T>(path: string) => call<T>('GET', path),
  post: <T>(path: string, body: unknown = {}) => call<T>('POST', path, body),
  put: <T>(path: string, body: unknown) => call<T>('PUT', path, body),
  patch: <T>(path: string, body: unknown) => call<T>('PATCH', path, body),
  delete: (path: string) => call<void>('DELETE', path),
};

/** A path with its parts escaped: `of('tenants', id, 'keys')`. */
export const pathOf = (...parts: string[]): string => `/${parts.map(encodeURIComponent).join('/')}`;

/** The query string of the parameters that have a value. */
export function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}
