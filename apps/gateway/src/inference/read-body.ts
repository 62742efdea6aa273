import type { IncomingMessage } from 'node:http';
import type { BodyShare, FullBudget } from '../admit/body-memory';
import { isJson } from '../http/media-type';
import { InferenceError } from './errors';

export const MAX_INFERENCE_BODY_BYTES = 10 * 1024 * 1024;
/** A body has so long, and a second more for each LEAST_BYTES_PER_SECOND of it that have arrived: 10 MiB have 90 s. */
export const BODY_GRACE_MS = 10_000;
const LEAST_BYTES_PER_SECOND = 128 * 1024;
/** Room for a body of unknown length at first; doubled when it is full. */
const FIRST_ROOM_BYTES = 16 * 1024;

/** The client closed the connection: there is nobody to answer. */
export class ClientLeftError extends Error {}

/**
 * The length that the request announces; null: it comes in chunks. Throws InferenceError unsupported_media_type or
 * payload_too_large for what is not worth reading.
 */
export function announcedBytes({ headers }: IncomingMessage): number | null {
  const { 'content-encoding': encoding = 'identity', 'content-length': length } = headers;
  if (!isJson(headers) || encoding.toLowerCase() !== 'identity') throw new InferenceError('unsupported_media_type');
  const bytes = headers['transfer-encoding'] === undefined ? Number(length ?? 0) : null;
  if (bytes !== null && bytes > MAX_INFERENCE_BODY_BYTES) throw new InferenceError('payload_too_large');
  return bytes;
}

/**
 * The request's body, of `announced` bytes or of as many as come. Reads no more once it rejects: with InferenceError
 * (payload_too_large, request_timeout, or what `full` makes of a budget without room) or ClientLeftError. Held in
 * `share` is never less than what is in memory.
 */
export function readBody(
  request: IncomingMessage,
  announced: number | null,
  share: BodyShare,
  full: (budget: FullBudget) => InferenceError,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // It may have gone while the stages before waited for somebody.
    if (request.destroyed && !request.complete) return reject(new ClientLeftError());
    const beganMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    let first: Buffer | undefined;
    // One room for all, not a list: what comes in pieces of a byte would take a hundred times as much.
    let room: Buffer | undefined;
    let bytes = 0;
    const stop = () => {
      clearTimeout(timer);
      request.removeListener('data', take);
      request.pause();
    };
    const fail = (error: Error) => {
      stop();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      if (bytes + chunk.length > MAX_INFERENCE_BODY_BYTES) return fail(new InferenceError('payload_too_large'));
      if (bytes === 0 && chunk.length === announced) {
        first = chunk;
        bytes = chunk.length;
        return;
      }
      if (!room || bytes + chunk.length > room.length) {
        const wanted = announced ?? Math.max(FIRST_ROOM_BYTES, bytes + chunk.length, 2 * (room?.length ?? 0));
        const size = Math.min(wanted, MAX_INFERENCE_BODY_BYTES);
        const budget = share.growTo(size);
        if (budget !== null) return fail(full(budget));
        const larger = Buffer.allocUnsafeSlow(size);
        room?.copy(larger, 0, 0, bytes);
        room = larger;
      }
      chunk.copy(room, bytes);
      bytes += chunk.length;
    };
    const watch = () => {
      const leftMs = BODY_GRACE_MS + (bytes / LEAST_BYTES_PER_SECOND) * 1_000 - (performance.now() - beganMs);
      if (leftMs <= 0) fail(new InferenceError('request_timeout'));
      else timer = setTimeout(watch, Math.ceil(leftMs));
    };
    // A small body is here already, as a rule: no timer for it.
    if (!request.complete) watch();
    request.on('data', take);
    request.on('end', () => {
      clearTimeout(timer);
      resolve(first ?? room?.subarray(0, bytes) ?? Buffer.alloc(0));
    });
    request.on('error', () => fail(new ClientLeftError()));
    request.on('close', () => {
      // Also comes after a whole body; an error is dear to make (2 % of a request).
      if (!request.complete) fail(new ClientLeftError());
    });
  });
}
