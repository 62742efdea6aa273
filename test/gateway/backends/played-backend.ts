import type { IncomingMessage, ServerResponse } from 'node:http';
import { useOwnBackend } from './own-backend';

/** Answers a request of a backend. `ask` is the body of the request. */
export type Play = (response: ServerResponse, ask: Record<string, unknown>) => void;

/** A backend whose answers the test sets. */
export function usePlayedBackend(model: string, others?: (url: string) => string) {
  const state: { play: Play; closed: number } = { play: () => {}, closed: 0 };
  const yaml = useOwnBackend(
    model,
    (request: IncomingMessage, response) => {
      let body = '';
      request.on('data', (part: Buffer) => (body += part.toString()));
      request.on('end', () => state.play(response, JSON.parse(body) as Record<string, unknown>));
      response.once('close', () => (state.closed += 1));
    },
    others,
  );
  return { yaml, state };
}

/** A stream of chat chunks. Each is given as a choice, or as the whole chunk with its choices. */
export function streams(chunks: readonly object[], end: object | null, goesOn = false): Play {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (chunk: object) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    for (const chunk of chunks) send('choices' in chunk ? chunk : { choices: [{ index: 0, ...chunk }] });
    if (goesOn) return;
    if (end) send(end);
    response.end('data: [DONE]\n\n');
  };
}

export function answers(body: object): Play {
  return (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The usage that a backend reports. */
export function usage(prompt: unknown, completion: unknown): { usage: object } {
  const total =
    typeof prompt === 'number' && typeof completion === 'number' ? { total_tokens: prompt + completion } : {};
  return { usage: { prompt_tokens: prompt, completion_tokens: completion, ...total } };
}

/** The last chunk of a stream. */
export function finish(reported: object = {}, choice: object = {}): object {
  return { choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...choice }], ...reported };
}
