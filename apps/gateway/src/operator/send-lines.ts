import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';

/**
 * Answers with a text that is read while it is sent. The first part is read before, so its error is answered in the
 * envelope. A later one breaks the connection. A HEAD gets the same headers, and reads none of the text: Fastify would
 * read a stream for it to its end, even after the client has left.
 */
export async function sendLines(reply: FastifyReply, mediaType: string, text: AsyncGenerator<string>): Promise<void> {
  const parts = reply.request.method === 'HEAD' ? [] : startingWith(await text.next(), text);
  await reply.type(mediaType).send(Readable.from(parts));
}

async function* startingWith(
  first: IteratorResult<string, unknown>,
  further: AsyncGenerator<string>,
): AsyncGenerator<string> {
  if (!first.done) yield first.value;
  yield* further;
}
