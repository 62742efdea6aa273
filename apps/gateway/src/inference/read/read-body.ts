import type { IncomingMessage } from 'node:http';
import type { BodyShare } from '../../admit/body-memory';
import type { FullBudget } from '../../admit/memory-budget';
import { validateMediaType } from '../../http/media-type';
import { InferenceError } from '../../inference-errors';

/** The time for a body, plus a second for every LEAST_BYTES_PER_SECOND bytes that arrived: 10 MiB may take 90 s. */
export const BODY_GRACE_MS = 10_000;
const LEAST_BYTES_PER_SECOND = 128 * 1024;
/** The first buffer of a body of unknown length. It is doubled when it is full. */
const FIRST_ROOM_BYTES = 16 * 1024;

/** The client closed the connection: there is nobody to answer. */
export class ClientLeftError extends Error {}

/**
 * The announced length of the body in bytes. Null: it is sent in chunks. Throws InferenceError unsupported_media_type
 * or payload_too_large.
 */
export function announcedBytes({ headers }: IncomingMessage, maxBytes: number): number | null {
  const { 'content-length': length } = headers;
  const problem = validateMediaType(headers);
  if (problem !== null) throw new InferenceError('unsupported_media_type', { message: problem });
  const bytes = headers['transfer-encoding'] === undefined ? Number(length ?? 0) : null;
  if (bytes !== null && bytes > maxBytes) throw tooLarge(maxBytes);
  return bytes;
}

/** Names the limit in force. It may have a fraction of a MiB. */
function tooLarge(maxBytes: number): InferenceError {
  const message = `The body is larger than the limit of ${maxBytes / 2 ** 20} MiB. Send a smaller one.`;
  return new InferenceError('payload_too_large', { message });
}

/**
 * Reads the request's body, of `announced` bytes or of unknown length. `share` reserves at least the memory that is
 * used, and knows the largest body. Stops reading when it rejects, with one of these:
 *
 * - ClientLeftError;
 * - InferenceError payload_too_large or request_timeout;
 * - what `full` returns for an exhausted memory budget.
 */
export function readBody(
  request: IncomingMessage,
  announced: number | null,
  share: BodyShare,
  full: (budget: FullBudget) => InferenceError,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The client may have left during an earlier stage.
    if (request.destroyed && !request.complete) return reject(new ClientLeftError());
    const beganMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    let first: Buffer | undefined;
    // One buffer, not a list of chunks: chunks of one byte would take a hundred times the memory.
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
      if (bytes + chunk.length > share.maxBytes) return fail(tooLarge(share.maxBytes));
      if (bytes === 0 && chunk.length === announced) {
        first = chunk;
        bytes = chunk.length;
        return;
      }
      if (!room || bytes + chunk.length > room.length) {
        const wanted = announced ?? Math.max(FIRST_ROOM_BYTES, bytes + chunk.length, 2 * (room?.length ?? 0));
        const size = Math.min(wanted, share.maxBytes);
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
      // After a stop, the rest of a body never arrives, and its time limit must not keep the process.
      else timer = setTimeout(watch, Math.ceil(leftMs)).unref();
    };
    // A small body has usually arrived already and needs no timer, even if its end is reported a moment later.
    if (!request.complete && request.readableLength !== announced) watch();
    request.on('data', take);
    request.on('end', () => {
      clearTimeout(timer);
      resolve(first ?? room?.subarray(0, bytes) ?? Buffer.alloc(0));
    });
    request.on('error', () => fail(new ClientLeftError()));
    request.on('close', () => {
      // `close` also follows a whole body. An error for it would cost 2 % of a request.
      if (!request.complete) fail(new ClientLeftError());
    });
  });
}
