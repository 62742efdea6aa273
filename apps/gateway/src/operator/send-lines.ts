import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';

/**
 * Answers with a text that is read while it is sent. A HEAD gets the same headers, and reads none of it: Fastify would
 * read a stream for it to its end, even after the client has left.
 */
export async function sendLines(reply: FastifyReply, mediaType: string, lines: AsyncIterable<string>): Promise<void> {
  const isHead = reply.request.method === 'HEAD';
  await reply.type(mediaType).send(Readable.from(isHead ? [] : lines));
}
