import { Counter, metrics } from '@tollgate/runtime';
import type { CatalogModel } from '../catalog/catalog';
import type { PromptEstimate } from '../prompt/prompt-estimate';
import type { InferenceRequest } from '../body/inference-request';
import { lacksToken } from '../body/token-ids';

const leftOut = new Counter({
  name: 'tollgate_model_fallbacks_left_out_total',
  help: 'Fallbacks left out for a request, by why: tools, tokens, stop, schema, media, fields, output, context, credit',
  labelNames: ['model', 'fallback', 'why'] as const,
  registers: [metrics],
});

/** What a fallback lacks for a request. */
type Lack = 'tools' | 'tokens' | 'stop' | 'schema' | 'media' | 'fields' | 'output';

/**
 * The fallbacks of a model that can serve a request as it was asked for, and its prompt. The prompt is counted if its
 * bound by bytes alone leaves less room at one of them than the request may use. That takes 55 ns a byte, of 32 KiB at
 * most (and of 128 KiB of tools that are indented): longer prompts are counted already.
 */
export function fitFallbacks(
  fallbacks: readonly CatalogModel[],
  request: InferenceRequest,
  asked: CatalogModel,
  bound: PromptEstimate,
): { fallbacks: readonly CatalogModel[]; prompt: PromptEstimate } {
  if (fallbacks.length === 0) return { fallbacks, prompt: bound };
  const note = (fallback: CatalogModel, why: Lack | 'context' | null) => {
    if (why !== null) leftOut.inc({ model: asked.id, fallback: fallback.id, why });
    return why === null;
  };
  const able = fallbacks.filter((one) => note(one, lackOf(one, request, asked)));
  const most = Math.min(request.maxTokens ?? Infinity, asked.maxOutputTokens);
  const isTight = (one: CatalogModel) => !hasRoom(one, bound, Math.min(most, one.maxOutputTokens));
  const prompt = able.some(isTight) ? bound.counted() : bound;
  const least = leastOutput(request, asked);
  return { fallbacks: able.filter((one) => note(one, hasRoom(one, prompt, least) ? null : 'context')), prompt };
}

/** Counts the fallbacks that the credit of a request does not pay for. */
export function noteUnpaid(asked: CatalogModel, able: readonly CatalogModel[], paid: readonly CatalogModel[]): void {
  for (const { id } of able)
    if (!paid.some((one) => one.id === id)) leftOut.inc({ model: asked.id, fallback: id, why: 'credit' });
}

function lackOf(fallback: CatalogModel, request: InferenceRequest, asked: CatalogModel): Lack | null {
  const { tools, dottedNames, stops, structuredOutput, remoteMedia, outgoing } = request;
  if ((tools > 0 && !fallback.tools) || (dottedNames && !fallback.dottedNames)) return 'tools';
  if (lacksToken(request, fallback)) return 'tokens';
  if (stops > fallback.maxStopSequences) return 'stop';
  if (structuredOutput && !fallback.jsonSchema) return 'schema';
  if (remoteMedia > 0 && !fetchesFromAll(fallback.mediaUrls, asked.mediaUrls)) return 'media';
  // A backend that does not know a field would get the request without it, and answer otherwise.
  const passOn = (name: string) => fallback.backends.every(({ passthrough }) => passthrough.has(name));
  if (!outgoing.extras.every(({ name }) => passOn(name))) return 'fields';
  return leastOutput(request, asked) > fallback.maxOutputTokens ? 'output' : null;
}

/** The output per choice that a fallback must have room for: what the client named, or one token. */
function leastOutput({ maxTokens, maxTokensNamed }: InferenceRequest, asked: CatalogModel): number {
  return maxTokensNamed ? Math.min(maxTokens!, asked.maxOutputTokens) : 1;
}

function hasRoom({ contextTokens }: CatalogModel, prompt: PromptEstimate, outputTokens: number): boolean {
  return prompt.roomFor(outputTokens, contextTokens) >= outputTokens;
}

/** Whether a model may fetch from every domain that another one may fetch from. */
function fetchesFromAll(own: CatalogModel['mediaUrls'], others: CatalogModel['mediaUrls']): boolean {
  if (typeof own === 'boolean' || typeof others === 'boolean') return own === true || others === false;
  return others.every((domain) => own.some((one) => domain === one || domain.endsWith(`.${one}`)));
}
