import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../http/api-error';
import { MAX_JSON_BODY_BYTES, refuseMediaType } from '../http/json-body';
import { hasUnreadBody } from './http-form';
import { continueIfOwed } from './server';

/** Methods whose bodies are not read: these endpoints have none. */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Keeps Fastify from judging a body or its media type: each surface does, once the caller is admitted. */
export function leaveBodies(server: FastifyInstance): void {
  for (const method of server.supportedMethods)
    server.addHttpMethod(method, { hasBody: false, overrideExisting: true });
}

/**
 * Reads the body of a request into `request.body`: a Buffer, or undefined if there is none. A guard calls it once the
 * caller is admitted, so a stranger learns only that a credential is missing. Sends `100 Continue` only now. Errors:
 * unsupported_media_type, payload_too_large, invalid_json (the body broke off).
 */
export async function receiveBody(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { raw } = request;
  if (WITHOUT_BODY.has(request.method)) return;
  const isChunked = raw.headers['transfer-encoding'] !== undefined;
  const announced = isChunked ? 0 : Number(raw.headers['content-length'] ?? 0);
  if (announced === 0 && !isChunked) return;
  if (announced > 0) refuseMediaType(request);
  if (announced > MAX_JSON_BODY_BYTES) throw new ApiError('payload_too_large');
  continueIfOwed(raw, reply.raw);
  request.body = await readAll(raw);
}

/** The server limits the time for a whole request, and then closes its connection. */
function readAll(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const fail = (error: Error) => {
      request.removeListener('data', take);
      request.pause();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_JSON_BODY_BYTES) fail(new ApiError('payload_too_large'));
      else chunks.push(chunk);
    };
    request.on('data', take);
    request.on('end', () => resolve(Buffer.concat(chunks)));
    // The client has left, so nobody gets this answer.
    request.on('error', () => fail(new ApiError('invalid_json')));
    request.on('close', () => {
      if (!request.complete) fail(new ApiError('invalid_json'));
    });
  });
}

/** Before an answer is sent: closes a connection that takes no further request. */
export function closeIfUnread(request: FastifyRequest, reply: FastifyReply): void {
  if (hasUnreadBody(request.raw)) reply.header('connection', 'close');
}
