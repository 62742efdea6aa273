import { MAX_ANSWER_MIB } from '../catalog/answer-limit';
import { InferenceError } from '../inference-errors';
import type { BodyRules } from './rules';
import { type EmbeddingRequest, MAX_EMBEDDING_INPUTS } from './schemas';

/**
 * Bytes of a number of a vector in JSON, with its comma. Python writes a float32 as a double of 17 digits, such as
 * `-0.012345679104328156`. Servers in Rust and Go write half of that, but the gateway does not know who answers.
 */
const BYTES_PER_NUMBER = 22;
/** Four bytes a number, of which base64 makes a third more. */
const BASE64_BYTES_PER_NUMBER = 16 / 3;
/** The members around a vector. */
const BYTES_PER_VECTOR = 64;

/**
 * Refuses a request whose vectors exceed the limit of an answer, before a backend works on it. The length of a vector
 * is the one that the request names, or else that of the model. If neither is known, nothing is refused. Throws
 * InferenceError.
 * @param inputs of the request
 */
export function refuseHugeVectors(
  { dimensions, encoding_format: encoding }: Pick<EmbeddingRequest, 'dimensions' | 'encoding_format'>,
  inputs: number,
  model: Pick<BodyRules, 'id' | 'dimensions'>,
): void {
  const numbers = dimensions ?? model.dimensions;
  if (numbers === null) return;
  const inputsWith = (bytesPerNumber: number) =>
    Math.floor((MAX_ANSWER_MIB * 2 ** 20) / (numbers * bytesPerNumber + BYTES_PER_VECTOR));
  const most = inputsWith(encoding === 'base64' ? BASE64_BYTES_PER_NUMBER : BYTES_PER_NUMBER);
  if (inputs <= most) return;
  const why = `vectors of ${numbers} numbers would exceed the limit of an answer, ${MAX_ANSWER_MIB} MiB`;
  if (most === 0) {
    const message = `'dimensions' is too large for the model '${model.id}': ${why}.`;
    throw new InferenceError('invalid_value', { param: 'dimensions', message });
  }
  const inBase64 = Math.min(inputsWith(BASE64_BYTES_PER_NUMBER), MAX_EMBEDDING_INPUTS);
  const more = encoding === 'base64' ? '' : ` With 'encoding_format': 'base64', at most ${inBase64}.`;
  const message = `'input' must have at most ${most} items for the model '${model.id}': more ${why}.${more}`;
  throw new InferenceError('invalid_value', { param: 'input', message });
}
