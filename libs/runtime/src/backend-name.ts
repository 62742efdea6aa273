import type { BackendConfig } from './tollgate-config';

/** As metering keeps names. */
const MAX_NAME_CHARS = 256;

/**
 * What usage events call a backend: origin and base path of its URL, which hold no secret and stay when it is started
 * again.
 */
export function backendName({ url }: Pick<BackendConfig, 'url'>): string {
  if (url === 'simulator:') return url;
  const { origin, pathname } = new URL(url);
  return (origin + pathname.replace(/\/+$/, '')).slice(0, MAX_NAME_CHARS);
}
