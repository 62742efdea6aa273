import { promisify } from 'node:util';
import { constants, gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib';

/** What is compressed is text that repeats itself: a higher level takes three times as long, and saves a tenth. */
const OPTIONS = { level: constants.Z_BEST_SPEED };
/**
 * Up to this size, this thread compresses (in 0.1 ms) and decompresses. To hand a small text to another thread takes
 * more CPU than to compress it.
 */
const MAX_SYNC_BYTES = 64 * 1024;
/** Larger results are decompressed by another thread. */
const MAX_SYNC_OUTPUT_BYTES = 512 * 1024;
/**
 * The largest decompressed batch. The largest one of this system is a reply of 8 MiB (MAX_REPLY_BYTES in
 * reply-size.ts) with its headers, alone in its batch. All others have MAX_SEND_BYTES (900 KiB) at most. Brokers
 * limit only compressed bytes, to 1 MiB (`max.message.bytes`), which may become 1 GiB.
 */
export const MAX_BATCH_BYTES = 9 * 1024 * 1024;

const compressBeside = promisify(gzip);
const decompressBeside = promisify(gunzip);

/** gzip for kafkajs, which compresses at level 6 and on another thread whatever the size. */
export const gzipCodec = {
  async compress({ buffer }: { buffer: Buffer }): Promise<Buffer> {
    if (buffer.length <= MAX_SYNC_BYTES) return gzipSync(buffer, OPTIONS);
    return await compressBeside(buffer, OPTIONS);
  },

  async decompress(buffer: Buffer): Promise<Buffer> {
    if (buffer.length <= MAX_SYNC_BYTES) {
      try {
        return gunzipSync(buffer, { maxOutputLength: MAX_SYNC_OUTPUT_BYTES });
      } catch (error) {
        if (!isTooLarge(error)) throw error;
      }
    }
    try {
      return await decompressBeside(buffer, { maxOutputLength: MAX_BATCH_BYTES });
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      throw new Error(`it has more than ${MAX_BATCH_BYTES} bytes when decompressed`, { cause: error });
    }
  },
};

const isTooLarge = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
