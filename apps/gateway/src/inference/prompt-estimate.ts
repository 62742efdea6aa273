import type { CatalogModel } from '../catalog/catalog';
import { estimateTokens } from '../upstream/token-estimate';
import type { Ask } from './ask';
import { templateSlack } from './prompt-bound';
import type { OwnCount } from './reported-usage';

/** Fields beside messages and prompts that are rendered as a rule. */
const RENDERED = ['tools', 'functions', 'response_format', 'suffix', 'documents'];

/** About how many tokens the prompt has, in 2 ns a byte: tells whether it need be counted at all. Images and sounds have none at the least, and the model's maximum at the most. */
export function estimatePrompt(ask: Ask, model: CatalogModel): OwnCount {
  return ownPrompt(ask, model, roughly(ask, model) + mediaTokens(ask, model));
}

/** @param tokens of the prompt with its media at the model's maximum, without what a template writes for tools */
export function ownPrompt(ask: Ask, model: CatalogModel, tokens: number): OwnCount {
  return { least: Math.max(0, tokens - mediaTokens(ask, model)), most: tokens + templateSlack(ask) };
}

function mediaTokens({ images, audio }: Ask, { maxTokensPerImage, maxTokensPerAudio }: CatalogModel): number {
  return images.count * (maxTokensPerImage ?? 0) + audio.count * (maxTokensPerAudio ?? 0);
}

function roughly({ kind, body, messages }: Ask, model: CatalogModel): number {
  let tokens = 0;
  for (const field of RENDERED) tokens += ofValue(body[field]);
  if (kind !== 'chat') return tokens + ofPrompts(kind === 'completion' ? body['prompt'] : body['input']);
  for (const message of body['messages'] as Record<string, unknown>[]) {
    for (const name in message) {
      const value = message[name];
      if (name !== 'content' || !Array.isArray(value)) tokens += ofValue(value);
      else for (const part of value as { text?: unknown }[]) tokens += ofValue(part.text);
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
