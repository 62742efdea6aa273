import { MANAGEMENT_ROOT } from '../management/prefix';

export function isBelow(prefix: string, url: string): boolean {
  return url.startsWith(prefix) && (url.length === prefix.length || '/?'.includes(url[prefix.length]!));
}

/** The management API answers every path below its root, also those without its version. */
export function isManagement({ url }: { url: string }): boolean {
  return isBelow(MANAGEMENT_ROOT, url);
}
