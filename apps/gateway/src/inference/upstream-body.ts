import type { Ask } from './ask';

/**
 * The body for a backend: the client's, with the backend's name for the model, the output that is held (`max_tokens` by whichever name the client
 * uses), and usage always asked for. Everything else goes through untouched.
 */
export function upstreamBody(ask: Ask, backendModel: string, maxTokensPerChoice: number): string {
  const body: Record<string, unknown> = { ...ask.body, model: backendModel };
  if (ask.kind !== 'embedding') {
    delete body['max_tokens'];
    delete body['max_completion_tokens'];
    body[ask.maxTokensField] = maxTokensPerChoice;
  }
  if (ask.stream)
    body['stream_options'] = { ...(ask.body['stream_options'] as object | null | undefined), include_usage: true };
  return JSON.stringify(body);
}
