import { toWire } from '../upstream/json-text';
import type { Ask } from './ask';
import { membersOf } from './json-members';

/**
 * The body for a backend: the client's, with the backend's name for the model, the output that is held (`max_tokens` by whichever name the client
 * uses), and usage always asked for. Everything else goes through byte by byte.
 */
export function upstreamBody(ask: Ask, backendModel: string, maxTokensPerChoice: number): Buffer {
  const ours: Record<string, unknown> = { model: backendModel };
  if (ask.kind !== 'embedding') ours[ask.maxTokensField] = maxTokensPerChoice;
  if (ask.stream) ours['stream_options'] = { ...(ask.body['stream_options'] as object | null), include_usage: true };
  const replaced = new Set([...Object.keys(ours), ...(ask.kind === 'embedding' ? [] : MAX_TOKENS_FIELDS)]);
  const json = ask.raw.toString('latin1');
  let out = toWire(ours).slice(0, -1);
  for (const { name, start, end } of membersOf(json)) if (!replaced.has(name)) out += `,${json.slice(start, end)}`;
  return Buffer.from(`${out}}`, 'latin1');
}

const MAX_TOKENS_FIELDS = ['max_tokens', 'max_completion_tokens'];
