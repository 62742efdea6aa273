import { MAX_BACKEND_NAME_CHARS } from '@tollgate/contracts';
import type { BackendConfig } from './backend-config';

/**
 * The name of a backend in usage events: origin and base path of its URL. They contain no secret, and stay the same
 * across restarts.
 */
export function backendName({ url }: Pick<BackendConfig, 'url'>): string {
  if (url === 'simulator:') return url;
  const { origin, pathname } = new URL(url);
  return (origin + pathname.replace(/\/+$/, '')).slice(0, MAX_BACKEND_NAME_CHARS);
}
