import { asciiJson } from '../generate/ascii-json';
import { ownModelName, type Reply } from './reply';
import { RequestError } from './request-error';
import { readCount, readModel, readTexts, type Body } from './request-fields';
import { usageJson } from './usage';
import type { FaultPlan } from '../config/fault-rules';
import { MAX_EMBEDDING_DIMENSIONS, type ModelSettings } from '../config/settings';
import { hashText, mix, Random } from '../generate/random';

const MAX_INPUTS = 2_048;

/** `POST /v1/embeddings`: a unit vector for each input, the same for the same model and text. Throws `RequestError`. */
export function embeddings(body: Body, settings: ModelSettings, faults: FaultPlan): Reply {
  const model = readModel(body);
  const inputs = readTexts(body['input'], 'input', MAX_INPUTS);
  const dimensions = readCount(body, 'dimensions', MAX_EMBEDDING_DIMENSIONS) ?? settings.embeddingDimensions;
  const format = body['encoding_format'] ?? 'float';
  if (format !== 'float' && format !== 'base64')
    throw new RequestError(400, 'encoding_format must be float or base64', 'encoding_format', 'invalid_value');
  const seed = hashText(model);
  const rows = inputs.map((input, i) => {
    const vector = unitVector(mix(seed, input.hash), dimensions);
    const embedding =
      format === 'float' ? `[${vector.join(',')}]` : `"${Buffer.from(vector.buffer).toString('base64')}"`;
    return `{"object":"embedding","index":${i},"embedding":${embedding}}`;
  });
  const promptTokens = inputs.reduce((sum, input) => sum + input.tokens, 0);
  const usage = usageJson({ promptTokens, completionTokens: null, cachedTokens: null }, faults);
  const tail = `"model":${asciiJson(ownModelName(model))}${usage === null ? '' : `,"usage":${usage}`}}`;
  return { stream: false, promptTokens, tokens: 0, body: `{"object":"list","data":[${rows.join(',')}],${tail}` };
}

/** A shorter vector is the beginning of the longer one, normalised again, as in models with shortenable embeddings. */
function unitVector(seed: number, dimensions: number): Float32Array<ArrayBuffer> {
  const random = new Random(seed);
  const vector = Float32Array.from({ length: dimensions }, () => random.next() / 0x80000000 - 1);
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return vector.map((x) => x / length);
}
