import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';

/** A paced backend sends at most this many tokens more than are recorded, like a model between two heartbeats. */
export const UNRECORDED_TOKENS = 50;
export const TOKEN_EVERY_MS = 2;

/** One stream, seen by its backend and its client. */
export interface PacedStream {
  backend: ServerResponse;
  id: string | null;
  sent: number;
  recorded: number;
  text: string;
  isOver: boolean;
  done: Promise<void>;
}

/** Sends tokens, one per chunk. */
export function send({ backend }: PacedStream, tokens: number): void {
  const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: ' word' } }] })}\n\n`;
  backend.write(chunk.repeat(tokens));
}

/**
 * Sends a token at intervals while `isPaced` returns true, but never more than UNRECORDED_TOKENS beyond the recorded
 * ones.
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

/** The number of tokens that the client has read. */
export const delivered = ({ text }: PacedStream) => text.split('" word"').length - 1;
