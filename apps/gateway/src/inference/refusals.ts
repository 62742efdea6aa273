import type { Limits, Refusal } from '@tollgate/admission';
import { logger } from '@tollgate/runtime';
import { type AdmissionRefusal, refusedBy } from '../admit/refused-by';
import { operatorWords, publicParam, publicWords } from '../upstream/exchange/backend-words';
import type { UpstreamFailure } from '../upstream/exchange/failure';
import { InferenceError, type InferenceErrorCode, INFERENCE_ERRORS, stopping } from '../inference-errors';
import type { AdmittedRequest } from './admitted-request';
import type { ExtraField } from '../body/extra-fields';
import { ChatCompletionRequest, CompletionRequest, EmbeddingRequest } from '../body/schemas';

/** `Retry-After` of a condition that passes at an unknown time. */
const SHORT_WAIT_SECONDS = 1;
/** `Retry-After` of a request above a minute's limit: the bucket is full again after a minute. */
const BUCKET_SECONDS = 60;

/** A longer field is not parsed for an error message. */
const MAX_READ_FIELD_CHARS = 4_096;

const ADMISSION_CODES: Record<Exclude<Refusal, 'bound'>, InferenceErrorCode> = {
  tenant_suspended: 'tenant_suspended',
  requests: 'requests_limit_exceeded',
  tokens: 'tokens_limit_exceeded',
  concurrency: 'concurrency_limit_exceeded',
  budget_reached: 'budget_reached',
  credit_exhausted: 'credit_exhausted',
  credit_held: 'credit_held',
  claimed: 'idempotency_in_progress',
};

/** The client's error for a refusal by admission. `limited`: the limits that it was admitted or looked at under. */
export function ofAdmission(
  refusal: AdmissionRefusal,
  limited: { keyLimits: Limits; tenantLimits: Limits },
  nowMs: number,
): InferenceError {
  const { reason, scope, retryAfterMs } = refusal;
  const code = ADMISSION_CODES[reason];
  const { status, message } = INFERENCE_ERRORS[code];
  if (reason === 'claimed') return inProgress(0);
  const by = refusedBy(refusal, limited, nowMs);
  if (status !== 429) return new InferenceError(code, { by });
  const fallback = reason === 'tokens' || reason === 'requests' ? BUCKET_SECONDS : SHORT_WAIT_SECONDS;
  const retryAfterSeconds = retryAfterMs === null ? fallback : Math.max(1, Math.ceil(retryAfterMs / 1_000));
  // This message already says when to retry.
  if (reason === 'credit_held') return new InferenceError(code, { retryAfterSeconds, by });
  const limit = scope === 'key' ? 'limit of this key' : 'limit of this account';
  return new InferenceError(code, {
    message: `${message.slice(0, -1)} (${limit}). Retry after ${retryAfterSeconds} s.`,
    retryAfterSeconds,
    by,
  });
}

/** The longest wait that is advised for a request that runs. */
const MAX_PROGRESS_WAIT_SECONDS = 10;

/** For a repeat of a request that has been running for `ageMs`: wait as long again. */
export function inProgress(ageMs: number): InferenceError {
  const seconds = Math.ceil(ageMs / 1_000);
  const retryAfterSeconds = Math.min(MAX_PROGRESS_WAIT_SECONDS, Math.max(SHORT_WAIT_SECONDS, seconds));
  return new InferenceError('idempotency_in_progress', { retryAfterSeconds });
}

/** The names of the request fields, as backends use them in messages. */
const FIELDS = fieldNames([ChatCompletionRequest, CompletionRequest, EmbeddingRequest]);

/**
 * The client's error for a failure of the backend, with a message of ours. A 400 or 422 describes the fault in the
 * request, so the backend's message is passed on, without details of the backend.
 */
function ofUpstream(
  failure: UpstreamFailure,
  model: { id: string; backends: readonly { model: string; origin: string }[] },
  extras: readonly ExtraField[],
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
          sent: readShort(extras),
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
 * Logs the failure for the operator and returns the client's error. A fault of the request is logged at level debug.
 */
export function failureAnswer(
  failure: UpstreamFailure,
  { model, request, logged }: AdmittedRequest,
  backend: string,
): InferenceError {
  const log = logger('gateway');
  if (failure.kind === 'refused' || failure.kind === 'too_large') {
    const reason = failure.kind === 'refused' ? operatorWords(failure.message ?? '', null) : undefined;
    log.debug({ ...logged, backend, kind: failure.kind, reason }, 'a backend refused a request');
  } else if (failure.kind !== 'stopped') log.warn({ ...logged, backend, ...failure }, 'a backend failed');
  return ofUpstream(failure, model, request.outgoing.extras);
}

/** The fields with their values, without those whose JSON is long: a message that names a part of them is cleaned. */
function readShort(extras: readonly ExtraField[]): Record<string, unknown> {
  const short = extras.filter(({ json }) => json.length <= MAX_READ_FIELD_CHARS);
  return Object.fromEntries(short.map(({ name, json }) => [name, JSON.parse(json) as unknown]));
}

/** The names of all properties in the schemas, at any depth. */
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

/** The error of a request that lost its hold while it ran. Nobody would pay for its answer. */
export function interrupted(): InferenceError {
  return new InferenceError('overloaded_error', {
    message: 'The request was interrupted. Try again.',
    retryAfterSeconds: SHORT_WAIT_SECONDS,
  });
}

/** 503 with a short `Retry-After`: a store does not answer, or the process is stopping. */
export function unavailable(): InferenceError {
  return new InferenceError('overloaded_error', { retryAfterSeconds: SHORT_WAIT_SECONDS });
}
