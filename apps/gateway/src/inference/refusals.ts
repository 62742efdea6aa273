import type { Refusal } from '@tollgate/admission';
import { logger } from '@tollgate/runtime';
import { operatorWords, publicParam, publicWords } from '../upstream/backend-words';
import type { UpstreamFailure } from '../upstream/failure';
import { InferenceError, type InferenceErrorCode, INFERENCE_ERRORS, stopping } from './errors';
import type { AdmittedRequest } from './admitted-request';
import { ChatCompletionRequest, CompletionRequest, EmbeddingRequest } from './body/schemas';

/** Time cures it, but nobody knows when: the shortest wait that helps. */
const SHORT_WAIT_SECONDS = 1;
/** A request with more tokens than a minute's worth: its limit is empty for a minute at the most. */
const BUCKET_SECONDS = 60;

const ADMISSION_CODES: Record<Exclude<Refusal, 'bound'>, InferenceErrorCode> = {
  tenant_suspended: 'tenant_suspended',
  requests: 'requests_limit_exceeded',
  tokens: 'tokens_limit_exceeded',
  concurrency: 'concurrency_limit_exceeded',
  budget_reached: 'budget_reached',
  credit_exhausted: 'credit_exhausted',
  credit_held: 'credit_held',
};

/** What the client is told when admission refuses. */
export function ofAdmission({
  reason,
  scope,
  retryAfterMs,
}: {
  reason: Exclude<Refusal, 'bound'>;
  scope: 'key' | 'tenant';
  retryAfterMs: number | null;
}): InferenceError {
  const code = ADMISSION_CODES[reason];
  const { status, message } = INFERENCE_ERRORS[code];
  if (status !== 429) return new InferenceError(code);
  const fallback = reason === 'tokens' || reason === 'requests' ? BUCKET_SECONDS : SHORT_WAIT_SECONDS;
  const retryAfterSeconds = retryAfterMs === null ? fallback : Math.max(1, Math.ceil(retryAfterMs / 1_000));
  // It says itself when to retry.
  if (reason === 'credit_held') return new InferenceError(code, { retryAfterSeconds });
  const limit = scope === 'key' ? 'limit of this key' : 'limit of this account';
  return new InferenceError(code, {
    message: `${message.slice(0, -1)} (${limit}). Retry after ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  });
}

/** What backends call the fields of a request. */
const FIELDS = fieldNames([ChatCompletionRequest, CompletionRequest, EmbeddingRequest]);

/**
 * What the client is told when the backend fails: our words. Only of a 400 and a 422 the backend's own, as it says what
 * is wrong with the request; without what they tell about the backend.
 */
export function ofUpstream(
  failure: UpstreamFailure,
  model: { id: string; backends: readonly { model: string; origin: string }[] },
): InferenceError {
  switch (failure.kind) {
    case 'refused': {
      const known =
        failure.code !== null &&
        Object.hasOwn(INFERENCE_ERRORS, failure.code) &&
        INFERENCE_ERRORS[failure.code as InferenceErrorCode].status === 400;
      const code = known ? (failure.code as InferenceErrorCode) : 'invalid_value';
      const words =
        failure.message &&
        publicWords(failure.message, {
          model: model.id,
          innerModels: model.backends.map((backend) => backend.model),
          hosts: model.backends.map(({ origin }) => new URL(origin).hostname),
          fields: FIELDS,
        });
      return new InferenceError(code, {
        message: words || 'The model refused the request.',
        param: publicParam(failure.param, FIELDS),
      });
    }
    case 'too_large':
      return new InferenceError('payload_too_large', {
        message: 'The request is too large for the model. Send a shorter one.',
      });
    case 'busy':
      return new InferenceError('overloaded_error', {
        retryAfterSeconds: failure.retryAfterSeconds ?? SHORT_WAIT_SECONDS,
      });
    case 'timeout':
      return new InferenceError('timeout_error');
    case 'stopped':
      return stopping();
    case 'failed':
      return new InferenceError('upstream_error');
  }
}

/**
 * As ofUpstream, and logged: the reason is the operator's to know. What the request is at fault for is logged at level
 * debug only.
 */
export function failureAnswer(
  failure: UpstreamFailure,
  { model, logged }: AdmittedRequest,
  backend: string,
): InferenceError {
  const log = logger('gateway');
  if (failure.kind === 'refused') {
    const reason = operatorWords(failure.message ?? '', null);
    log.debug({ ...logged, backend, kind: failure.kind, reason }, 'a backend refused a request');
  } else if (failure.kind !== 'stopped') log.warn({ ...logged, backend, ...failure }, 'a backend failed');
  return ofUpstream(failure, model);
}

/** Names of properties in schemas, at any depth. */
function fieldNames(schemas: readonly unknown[]): ReadonlySet<string> {
  const names = new Set<string>();
  const gather = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return;
    for (const [keyword, inner] of Object.entries(schema)) {
      if (keyword === 'properties') for (const name of Object.keys(inner as object)) names.add(name);
      gather(inner);
    }
  };
  schemas.forEach(gather);
  return names;
}

/** The hold was lost while the request ran: whatever comes of it, nobody would pay. */
export function interrupted(): InferenceError {
  return new InferenceError('overloaded_error', {
    message: 'The request was interrupted. Try again.',
    retryAfterSeconds: SHORT_WAIT_SECONDS,
  });
}

/** A store of ours does not answer: 503, and soon again. */
export function unavailable(): InferenceError {
  return new InferenceError('overloaded_error', { retryAfterSeconds: SHORT_WAIT_SECONDS });
}
