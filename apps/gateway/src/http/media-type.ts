import type { IncomingHttpHeaders } from 'node:http';

/** Whether a request announces JSON, whatever parameters come with it. */
export function isJson({ 'content-type': type = '' }: IncomingHttpHeaders): boolean {
  return type.split(';', 1)[0]!.trim().toLowerCase() === 'application/json';
}
