import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { ApiError } from './api-error';
import { validateMediaType } from './media-type';

/**
 * Limit for requests of the management and the operator API. Inference requests have a larger one
 * (inference/read/read-body.ts).
 */
export const MAX_JSON_BODY_BYTES = 64 * 1024;

/**
 * The JSON object in the body of a request. `{}` without a body. Errors: unsupported_media_type, invalid_json (not
 * UTF-8, not JSON, or not an object).
 */
export function readJsonObject(request: FastifyRequest): Record<string, unknown> {
  const body = request.body as Buffer | undefined;
  if (body === undefined || body === null || body.length === 0) return {};
  refuseMediaType(request);
  if (!isUtf8(body)) throw new ApiError('invalid_json', 'The body is not valid UTF-8.');
  let value: unknown;
  try {
    // Unlike a Buffer, it drops a byte order mark.
    value = JSON.parse(new TextDecoder().decode(body));
  } catch {
    throw new ApiError('invalid_json', 'The body is not valid JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ApiError('invalid_json');
  return value as Record<string, unknown>;
}

/** Error: unsupported_media_type, with the reason. */
export function refuseMediaType({ headers }: FastifyRequest): void {
  const problem = validateMediaType(headers);
  if (problem !== null) throw new ApiError('unsupported_media_type', problem);
}
