import type { IncomingHttpHeaders } from 'node:http';

/** Whether the content type of a request is JSON, with any parameters. */
export function isJson({ 'content-type': type = '' }: IncomingHttpHeaders): boolean {
  return type.split(';', 1)[0]!.trim().toLowerCase() === 'application/json';
}
