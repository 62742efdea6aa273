import { gzipCodec } from '../client/gzip';
import { MAX_MESSAGE_BYTES } from '../publish/publisher';

/** A reply that is larger than MAX_MESSAGE_BYTES is sent if it has at most these bytes and shrinks to that size. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** What surrounds an answer in its reply, at most. */
const ENVELOPE_BYTES = 4 * 1024;

/** Whether a reply can be sent. Lists of usage are large, and shrink to a tenth. */
export function fitsReply(reply: Buffer): Promise<boolean> {
  return fits(reply, 0);
}

/**
 * Whether the answer to a request can be sent, whatever carries the requests. For answers whose size depends on what is
 * asked: the caller gets 503 for one that cannot be sent, and so does each repeat.
 */
export function fitsAnswer(answer: object): Promise<boolean> {
  return fits(Buffer.from(JSON.stringify(answer)), ENVELOPE_BYTES);
}

async function fits(content: Buffer, moreBytes: number): Promise<boolean> {
  if (content.length + moreBytes <= MAX_MESSAGE_BYTES) return true;
  if (content.length + moreBytes > MAX_REPLY_BYTES) return false;
  return (await gzipCodec.compress({ buffer: content })).length + moreBytes <= MAX_MESSAGE_BYTES;
}
