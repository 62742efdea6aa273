import { newId } from '@tollgate/contracts';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { OWN_ID_HEADER, ownIdOf, requestIdOf } from '../http/request-id';

/** The answer of a port to a request that reaches no route. */
export interface EarlyRefusal {
  status: number;
  /** Shown to the client. */
  message: string;
  retryAfterSeconds?: number;
}

/** Writes the refusal as JSON, in the envelope of the surface that `url` belongs to. Undefined: no path was read. */
export type Envelope = (refusal: EarlyRefusal, url?: string) => string;

/** The headers and body of an answer after which the connection is closed. `request`: if its head was read. */
export function closingAnswer(
  refusal: EarlyRefusal,
  envelope: Envelope,
  request?: IncomingMessage,
): { headers: [string, string][]; body: string } {
  const body = envelope(refusal, request?.url);
  const requestId = request ? requestIdOf(request) : newId('req');
  const headers: [string, string][] = [
    ['x-request-id', requestId],
    [OWN_ID_HEADER, request ? ownIdOf(request, requestId) : requestId],
    ['content-type', 'application/json'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
  ];
  if (refusal.retryAfterSeconds !== undefined) headers.push(['retry-after', String(refusal.retryAfterSeconds)]);
  return { headers, body };
}

/** The same answer as text, for a socket without a whole request. */
export function rawAnswer(refusal: EarlyRefusal, envelope: Envelope, request?: IncomingMessage): string {
  const { headers, body } = closingAnswer(refusal, envelope, request);
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${head}\r\n${body}`;
}
