import { newId } from '@tollgate/contracts';
import { STATUS_CODES } from 'node:http';

/** The answer of a port to a request that reaches no route. */
export interface EarlyRefusal {
  status: number;
  /** Shown to the client. */
  message: string;
  retryAfterSeconds?: number;
}

/** Writes the refusal in the port's own envelope, as JSON. */
export type Envelope = (refusal: EarlyRefusal) => string;

/** The headers and body of an answer after which the connection is closed. */
export function closingAnswer(
  refusal: EarlyRefusal,
  envelope: Envelope,
): { headers: [string, string][]; body: string } {
  const body = envelope(refusal);
  const headers: [string, string][] = [
    ['x-request-id', newId('req')],
    ['content-type', 'application/json'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
  ];
  if (refusal.retryAfterSeconds !== undefined) headers.push(['retry-after', String(refusal.retryAfterSeconds)]);
  return { headers, body };
}

/** The same answer as text, for a socket without a parsed request. */
export function rawAnswer(refusal: EarlyRefusal, envelope: Envelope): string {
  const { headers, body } = closingAnswer(refusal, envelope);
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${head}\r\n${body}`;
}
