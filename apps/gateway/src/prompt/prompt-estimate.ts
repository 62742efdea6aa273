import type { CatalogModel } from '../catalog/catalog';
import { Prose } from './token-estimate';
import type { InferenceRequest } from '../inference/body/inference-request';
import { ALSO_IN_PROMPT } from '../inference/body/outgoing';
import { mediaTokens, templateSlack } from './prompt-bound';

/** What we know of a prompt or an output: two numbers where it has parts that nobody can count (images). */
export interface OwnCount {
  least: number;
  most: number;
}

/** About how many tokens the prompt has, in 4 ns a byte; null where that is not to be trusted, and it must be counted. Images and sounds have none at the least, and the model's maximum at the most. What is counted already is not estimated. */
export function estimatePrompt(request: InferenceRequest, model: CatalogModel): OwnCount | null {
  if (request.counted) return ownPrompt(request, model, request.counted.total);
  const tokens = roughly(request, request.body!, model);
  return tokens === null ? null : ownPrompt(request, model, tokens + mediaTokens(request, model));
}

/** @param tokens of the prompt with its media at the model's maximum, without what a template writes for tools */
export function ownPrompt(request: InferenceRequest, model: CatalogModel, tokens: number): OwnCount {
  return { least: Math.max(0, tokens - mediaTokens(request, model)), most: tokens + templateSlack(request) };
}

function roughly(
  { kind, messages, outgoing }: InferenceRequest,
  body: Record<string, unknown>,
  model: CatalogModel,
): number | null {
  const prose = new Prose();
  for (const field of ALSO_IN_PROMPT) addValue(prose, body[field]);
  for (const { rendered, json } of outgoing.extras) if (rendered) addValue(prose, json);
  if (kind !== 'chat') addPrompts(prose, kind === 'completion' ? body['prompt'] : body['input']);
  else {
    for (const message of body['messages'] as Record<string, unknown>[]) addMessage(prose, message);
    prose.tokens += messages * model.templateTokensPerMessage + model.templateTokens;
  }
  return prose.isTrusted ? prose.tokens : null;
}

function addMessage(prose: Prose, message: Record<string, unknown>): void {
  for (const name in message) {
    const value = message[name];
    if (name === 'role') prose.tokens += 1;
    else if (name !== 'content' || !Array.isArray(value)) addValue(prose, value);
    else for (const part of value as { text?: string; refusal?: string }[]) addValue(prose, part.text ?? part.refusal);
  }
}

function addValue(prose: Prose, value: unknown): void {
  if (value === null || value === undefined) return;
  prose.add(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
}

/** A string or a list of tokens, or several of them. */
function addPrompts(prose: Prose, prompts: unknown): void {
  if (!Array.isArray(prompts)) return addValue(prose, prompts);
  for (const prompt of prompts as unknown[])
    if (typeof prompt === 'number') prose.tokens += 1;
    else if (Array.isArray(prompt)) prose.tokens += prompt.length;
    else addValue(prose, prompt);
}
