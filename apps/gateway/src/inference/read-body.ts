import type { IncomingMessage } from 'node:http';
import { InferenceError } from './errors';

export const MAX_INFERENCE_BODY_BYTES = 10 * 1024 * 1024;

/** The client closed the connection: there is nobody to answer. */
export class ClientLeftError extends Error {}

/**
 * The request's body. Throws InferenceError (unsupported_media_type, payload_too_large) without reading what it refuses, and ClientLeftError.
 */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  const {
    'content-type': type = '',
    'content-encoding': encoding = 'identity',
    'content-length': length,
  } = request.headers;
  const mediaType = type.split(';', 1)[0]!.trim().toLowerCase();
  if (mediaType !== 'application/json' || encoding.toLowerCase() !== 'identity')
    throw new InferenceError('unsupported_media_type');
  if (Number(length) > MAX_INFERENCE_BODY_BYTES) throw new InferenceError('payload_too_large');
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_INFERENCE_BODY_BYTES) {
        request.removeAllListeners('data');
        request.resume();
        reject(new InferenceError('payload_too_large'));
      } else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.on('error', () => reject(new ClientLeftError()));
    request.on('close', () => {
      // Also comes after a whole body; an error is dear to make (2 % of a request).
      if (!request.complete) reject(new ClientLeftError());
    });
  });
}
