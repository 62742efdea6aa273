import { Counter, metrics } from '@tollgate/runtime';

export const keyedRequests = new Counter({
  name: 'tollgate_idempotent_requests_total',
  help: 'Requests with an Idempotency-Key, by result: first, running, mismatch, kept (repeated), not_kept',
  labelNames: ['result'] as const,
  registers: [metrics],
});
export const answersNotKept = new Counter({
  name: 'tollgate_idempotent_answers_not_kept_total',
  help: 'Answers to requests with an Idempotency-Key that were not kept for repeats: too large, or no memory for them',
  registers: [metrics],
});
