import type { IncomingMessage } from 'node:http';

/** Whether the request announces JSON, whatever parameters come with it. */
export function isJson({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const { 'content-type': type = '' } = headers;
  return type.split(';', 1)[0]!.trim().toLowerCase() === 'application/json';
}
