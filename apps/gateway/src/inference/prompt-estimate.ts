import type { CatalogModel } from '../catalog/catalog';
import { estimateTokens } from '../upstream/token-estimate';
import type { Ask } from './body/ask';
import { ALSO_IN_PROMPT } from './body/outgoing';
import { mediaTokens, templateSlack } from './body/prompt-bound';
import type { OwnCount } from './reported-usage';

/** About how many tokens the prompt has, in 2 ns a byte: tells whether it need be counted at all. Images and sounds have none at the least, and the model's maximum at the most. What is counted already is not estimated. */
export function estimatePrompt(ask: Ask, model: CatalogModel): OwnCount {
  const tokens = ask.counted?.total ?? roughly(ask, ask.body!, model) + mediaTokens(ask, model);
  return ownPrompt(ask, model, tokens);
}

/** @param tokens of the prompt with its media at the model's maximum, without what a template writes for tools */
export function ownPrompt(ask: Ask, model: CatalogModel, tokens: number): OwnCount {
  return { least: Math.max(0, tokens - mediaTokens(ask, model)), most: tokens + templateSlack(ask) };
}

function roughly({ kind, messages, outgoing }: Ask, body: Record<string, unknown>, model: CatalogModel): number {
  let tokens = 0;
  for (const field of ALSO_IN_PROMPT) tokens += ofValue(body[field]);
  for (const { rendered, json } of outgoing.extras) if (rendered) tokens += ofValue(json);
  if (kind !== 'chat') return tokens + ofPrompts(kind === 'completion' ? body['prompt'] : body['input']);
  for (const message of body['messages'] as Record<string, unknown>[]) {
    for (const name in message) {
      const value = message[name];
      if (name !== 'content' || !Array.isArray(value)) tokens += ofValue(value);
      else
        for (const part of value as { text?: string; refusal?: string }[]) tokens += ofValue(part.text ?? part.refusal);
    }
  }
  return tokens + messages * model.templateTokensPerMessage + model.templateTokens;
}

function ofValue(value: unknown): number {
  if (value === null || value === undefined) return 0;
  return estimateTokens(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
}

/** A string or a list of tokens, or several of them. */
function ofPrompts(prompts: unknown): number {
  if (!Array.isArray(prompts)) return ofValue(prompts);
  let tokens = 0;
  for (const prompt of prompts as unknown[])
    tokens += typeof prompt === 'number' ? 1 : Array.isArray(prompt) ? prompt.length : ofValue(prompt);
  return tokens;
}
