import { MAX_ANSWER_BYTES } from '../../upstream/exchange/plain-answer';
import type { InferenceRequest } from '../../body/inference-request';
import { MAX_TOP_LOGPROBS } from '../../body/schemas';

/** Upper bound of one token in JSON, and of one `logprobs` entry with its bytes. */
const BYTES_PER_TOKEN = 256;
/** Allowance for everything else in an answer. */
const SPARE_BYTES = 64 * 1024;

/**
 * The most bytes that a plain answer can have within its hold. Reading it takes about 50 ns a byte (answer-reader.ts),
 * and more for a malicious answer.
 */
export function maxAnswerBytes(
  request: Pick<InferenceRequest, 'kind' | 'choices' | 'body'>,
  maxTokensPerChoice: number,
): number {
  if (request.kind === 'embedding') return MAX_ANSWER_BYTES;
  const bytes = BYTES_PER_TOKEN * maxTokensPerChoice * request.choices * (1 + alternatives(request.body)) + SPARE_BYTES;
  return Math.min(bytes, MAX_ANSWER_BYTES);
}

/**
 * The alternatives of each token in `logprobs`. If a worker read the body, it is not available here, and the maximum is
 * assumed.
 */
function alternatives(body: InferenceRequest['body']): number {
  if (body === null) return 1 + MAX_TOP_LOGPROBS;
  const { logprobs, top_logprobs: top } = body;
  if (typeof logprobs === 'number') return 1 + logprobs;
  return logprobs === true ? 1 + (typeof top === 'number' ? top : 0) : 0;
}
