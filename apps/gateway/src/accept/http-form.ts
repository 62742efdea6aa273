import type { IncomingMessage } from 'node:http';

/**
 * Finds request heads that node:http accepts although two readers may understand them differently. Returns null, or a
 * public message that says what is wrong. node:http itself refuses a length beside chunks, folded lines, control
 * characters and bare line feeds.
 */
export function validateHttp({ httpVersion, rawHeaders }: IncomingMessage): string | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return 'The HTTP version is not supported. Use HTTP/1.1 or HTTP/1.0.';
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    // Compares lengths first, so that most headers need no new string.
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
 * Whether an announced body has not fully arrived, so that the connection takes no further request. A short remainder
 * that is on its way does not count: node:http reads and drops it after the answer. A client that waits for
 * `100 Continue` may never send the body.
 */
export function hasUnreadBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers['transfer-encoding'] !== undefined) return true;
  const bytes = Number(headers['content-length'] ?? 0);
  return bytes > MAX_DROPPED_BYTES || (bytes > 0 && headers.expect !== undefined);
}

const MAX_DROPPED_BYTES = 64 * 1024;
