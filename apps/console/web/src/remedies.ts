/** What helps against the errors of the inference API that occur with valid requests. */
const REMEDIES: Readonly<Record<string, string>> = {
  credit_exhausted: 'Top up the credit.',
  credit_held: 'Running requests reserve the rest of the credit. Send fewer at once, or top up.',
  budget_reached: 'Raise the budget of the key or the tenant, or wait for the next month.',
  tenant_suspended: 'Ask the operator.',
  requests_limit_exceeded: 'Spread the requests, honour Retry-After, or ask for a plan with a higher limit.',
  tokens_limit_exceeded: 'Send shorter prompts or a lower max_tokens, or ask for a plan with a higher limit.',
  concurrency_limit_exceeded: 'Send fewer requests at once, or ask for a plan with a higher limit.',
  model_not_found: 'Use an id of the Models page. The profile of the key may not allow this model.',
  context_length_exceeded: 'Shorten the prompt, or use a model with a larger context.',
  payload_too_large: 'Send a smaller body.',
  upstream_error: 'The model failed. Send the request again. Only output that was delivered is charged.',
  timeout_error: 'The model was too slow. Send the request again. Only output that was delivered is charged.',
  overloaded_error: 'Send the request again after the time that Retry-After names.',
};
const CHECK_REQUEST = 'Read the message of the answer: it names the field and what is wrong with it.';

/** What to do about an error code of the inference API. */
export const remedyOf = (code: string): string => REMEDIES[code] ?? CHECK_REQUEST;
