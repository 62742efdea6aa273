/** Headers of an error on every surface, by its status and retry time. */
export function errorHeaders(error: {
  status: number;
  retryAfterSeconds?: number | null;
}): [name: string, value: string][] {
  const headers: [string, string][] = [];
  const { status, retryAfterSeconds = null } = error;
  if (retryAfterSeconds !== null) headers.push(['retry-after', String(retryAfterSeconds)]);
  if (status === 401) headers.push(['www-authenticate', 'Bearer']);
  return headers;
}
