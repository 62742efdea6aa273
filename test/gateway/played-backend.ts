import type { IncomingMessage, ServerResponse } from 'node:http';
import { useOwnBackend } from './own-backend';

/** What a backend answers a request with; `ask` is the body that it got. */
export type Play = (response: ServerResponse, ask: Record<string, unknown>) => void;

/** A backend that does what the test says next, whatever it is asked for. */
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

/** A stream of chat chunks; each is a choice, or the whole chunk's choices and what stands beside them. */
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

/** Usage as a backend reports it. */
export function usage(prompt: unknown, completion: unknown): { usage: object } {
  const total =
    typeof prompt === 'number' && typeof completion === 'number' ? { total_tokens: prompt + completion } : {};
  return { usage: { prompt_tokens: prompt, completion_tokens: completion, ...total } };
}

/** The chunk that ends a stream. */
export function finish(reported: object = {}, choice: object = {}): object {
  return { choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...choice }], ...reported };
}
