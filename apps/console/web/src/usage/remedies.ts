const AS_THE_MESSAGE_SAYS = 'Read the message of the answer: it names the field and what is wrong with it.';
const ANOTHER_IDEMPOTENCY_KEY = 'Send another Idempotency-Key to run the request again. It is charged again.';

/** What helps against each error of the inference API. */
export const REMEDIES: Readonly<Record<string, string>> = {
  invalid_json: 'Send a body that is valid JSON.',
  missing_required_parameter: AS_THE_MESSAGE_SAYS,
  invalid_value: AS_THE_MESSAGE_SAYS,
  invalid_type: AS_THE_MESSAGE_SAYS,
  unsupported_parameter: 'Leave out the parameter that the message names, or use a model that supports it.',
  context_length_exceeded: 'Shorten the prompt, or use a model with a larger context.',
  missing_api_key: 'Send the key as "Authorization: Bearer sk-svc-…".',
  invalid_api_key: 'Use a key of the Keys page that is active. A revoked or expired key is refused.',
  credit_exhausted: 'Top up the credit.',
  credit_held: 'Running requests reserve the remaining credit. Send fewer at once, or top up.',
  budget_reached: 'Raise the budget of the key or the tenant, or wait for the next month.',
  tenant_suspended: 'Ask the operator.',
  model_not_found: 'Use an id of the Models page. The profile of the key may not allow this model.',
  route_not_found: 'Correct the path. The page /docs of the inference API lists its endpoints.',
  method_not_allowed: 'Use a method that the Allow header of the answer names.',
  request_timeout:
    'Send the body faster: the limit is 10 s, and 1 s for each 128 KiB. Check the network of the program.',
  payload_too_large: 'Send a smaller body.',
  unsupported_media_type: 'Send JSON with the header "Content-Type: application/json".',
  idempotency_in_progress:
    'The first request with this Idempotency-Key is running. Send this one again when it has ended.',
  idempotency_mismatch: 'Use a new Idempotency-Key for each different request.',
  idempotency_answer_not_stored: ANOTHER_IDEMPOTENCY_KEY,
  idempotency_answer_incomplete: ANOTHER_IDEMPOTENCY_KEY,
  requests_limit_exceeded: 'Spread the requests, honour Retry-After, or ask for a plan with a higher limit.',
  tokens_limit_exceeded: 'Send shorter prompts or a lower max_tokens, or ask for a plan with a higher limit.',
  concurrency_limit_exceeded: 'Send fewer requests at once, or ask for a plan with a higher limit.',
  api_error:
    'The service has an error. Send the request again. If the error persists, give the operator the request id.',
  upstream_error: 'The model failed. Send the request again. Only output that was delivered is charged.',
  timeout_error: 'The model was too slow. Send the request again. Only output that was delivered is charged.',
  overloaded_error: 'Send the request again after the time that Retry-After names.',
};

/** What to do about an error code of the inference API. A newer gateway may have codes that this page does not know. */
export const remedyOf = (code: string): string => REMEDIES[code] ?? 'Read the message of the answer.';
