import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';

/** What a backend sends at most beyond what is recorded: as a model does between two records. */
export const UNRECORDED_TOKENS = 50;
export const TOKEN_EVERY_MS = 2;

/** One stream, from its backend's side and its client's. */
export interface PacedStream {
  backend: ServerResponse;
  id: string | null;
  sent: number;
  recorded: number;
  text: string;
  isOver: boolean;
  done: Promise<void>;
}

/** Tokens, a chunk each. */
export function send({ backend }: PacedStream, tokens: number): void {
  const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: ' word' } }] })}\n\n`;
  backend.write(chunk.repeat(tokens));
}

/**
 * Sends a token now and then, but never more than UNRECORDED_TOKENS beyond what is recorded, until `isPaced` says no
 * more.
 */
export async function pace(stream: PacedStream, isPaced: () => boolean): Promise<void> {
  while (isPaced() && !stream.isOver) {
    if (stream.sent - stream.recorded < UNRECORDED_TOKENS) {
      send(stream, 1);
      stream.sent += 1;
    }
    await setTimeout(TOKEN_EVERY_MS);
  }
}

/** Tokens that the client read. */
export const delivered = ({ text }: PacedStream) => text.split('" word"').length - 1;
