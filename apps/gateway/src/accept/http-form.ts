import type { IncomingMessage } from 'node:http';

/**
 * What node:http lets pass although two readers may understand it in two ways: null, or what is wrong with the request,
 * to say in public. What it refuses itself (a length beside chunks, folded lines, control characters, a bare line feed)
 * never becomes a request.
 */
export function validateHttp({ httpVersion, rawHeaders }: IncomingMessage): string | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return 'The HTTP version is not supported. Use HTTP/1.1 or HTTP/1.0.';
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    // By length first: nothing is made of the names of every request.
    if (name.length === HOST.length) {
      if (name.toLowerCase() === HOST) hosts += 1;
    } else if (name.length === TRANSFER_ENCODING.length && name.toLowerCase() === TRANSFER_ENCODING) {
      if (httpVersion === '1.0') return 'HTTP/1.0 does not support Transfer-Encoding. Send Content-Length instead.';
      if (rawHeaders[at + 1]!.toLowerCase() !== 'chunked') return 'The only supported Transfer-Encoding is "chunked".';
    }
  }
  if (hosts > 1) return 'The request has more than one Host header. Send exactly one.';
  return hosts === 0 && httpVersion === '1.1' ? 'The Host header is missing. Send exactly one.' : null;
}

const HOST = 'host';
const TRANSFER_ENCODING = 'transfer-encoding';

/**
 * A body was announced and is not here as a whole: what is left of it comes before the next request of the connection.
 */
export function hasUnreadBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
