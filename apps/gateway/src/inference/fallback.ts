import type { CatalogModel } from '../catalog/catalog';
import type { InferenceRequest } from './body/inference-request';

/**
 * Whether a fallback of the request's model can serve it as it was asked for: with its tools, its schema and its media,
 * and with room for the prompt and the output that the client named.
 * @param promptTokens an upper bound
 */
export function canServe(
  fallback: CatalogModel,
  request: InferenceRequest,
  asked: CatalogModel,
  promptTokens: number,
): boolean {
  const { tools, dottedNames, stops, structuredOutput, media, maxTokens, maxTokensNamed } = request;
  if (tools > 0 && !fallback.tools) return false;
  if ((dottedNames && !fallback.dottedNames) || stops > fallback.maxStopSequences) return false;
  if (structuredOutput && !fallback.jsonSchema) return false;
  // A URL that the model asked for may fetch, the fallback may not.
  const urls = media.image_url.count + media.video_url.count;
  if (urls > 0 && asked.mediaUrls !== false && fallback.mediaUrls !== true) return false;
  const named = maxTokensNamed ? Math.min(maxTokens!, asked.maxOutputTokens) : 1;
  return named <= fallback.maxOutputTokens && promptTokens + named <= fallback.contextTokens;
}
