import { MAX_ANSWER_BYTES } from '../upstream/plain-answer';
import type { InferenceRequest } from './body/inference-request';
import { MAX_TOP_LOGPROBS } from './body/schemas';

/** The longest token in JSON; and an entry of `logprobs`, with its bytes, is no longer. */
const BYTES_PER_TOKEN = 256;
/** Everything else in an answer. */
const SPARE_BYTES = 64 * 1024;

/**
 * What an answer that is not streamed can have at most, by what is held: reading it takes the event loop 30 ns a byte,
 * and more where it is made for that.
 */
export function maxAnswerBytes(
  request: Pick<InferenceRequest, 'kind' | 'choices' | 'body'>,
  maxTokensPerChoice: number,
): number {
  if (request.kind === 'embedding') return MAX_ANSWER_BYTES;
  const bytes = BYTES_PER_TOKEN * maxTokensPerChoice * request.choices * (1 + alternatives(request.body)) + SPARE_BYTES;
  return Math.min(bytes, MAX_ANSWER_BYTES);
}

/** For each token, of `logprobs`. A body that was read elsewhere is not known here any more. */
function alternatives(body: InferenceRequest['body']): number {
  if (body === null) return MAX_TOP_LOGPROBS;
  const { logprobs, top_logprobs: top } = body;
  if (typeof logprobs === 'number') return 1 + logprobs;
  return logprobs === true ? 1 + (typeof top === 'number' ? top : 0) : 0;
}
