import { newId } from '@tollgate/contracts';
import { STATUS_CODES } from 'node:http';

/** What a port says where no route is reached. */
export interface EarlyRefusal {
  status: number;
  /** Public. */
  message: string;
  retryAfterSeconds?: number;
}

/** The port's own envelope for it, as JSON. */
export type Envelope = (refusal: EarlyRefusal) => string;

/** The headers of an answer after which the connection is closed, and its body. */
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

/** The same as bytes, for a socket of which no request was read. */
export function rawAnswer(refusal: EarlyRefusal, envelope: Envelope): string {
  const { headers, body } = closingAnswer(refusal, envelope);
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${head}\r\n${body}`;
}
