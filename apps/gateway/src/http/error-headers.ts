/** The headers that an error is answered with because of its status or because waiting helps, on every surface. */
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
