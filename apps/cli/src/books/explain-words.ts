import type { FailedAttempt, Obstacle, RefusedRequest, ServedRequest } from '@tollgate/contracts';
import { formatNanos } from '../command/money';
import { printable } from '../command/table';

const WHAT: Record<Obstacle['what'], string> = {
  requests: 'the limit of requests per minute',
  tokens: 'the limit of tokens per minute',
  concurrency: 'the limit of requests at once',
  invalid_requests: 'too many invalid requests',
  body_memory: 'too much memory for the bodies of requests or for unread answers',
  budget: 'the budget of this month is spent',
  credit: 'the credit is used up',
  held: 'running requests hold the remaining credit or budget',
  suspended: 'the tenant is suspended or closed',
  key_revoked: 'the key, or this former secret of it, is revoked',
  key_expired: 'the key, or this former secret of it, has expired',
  no_profile: 'the configuration no longer has its plan or profile',
  no_models: 'the configuration has no model that it may use',
};

const WHY: Record<FailedAttempt['why'], string> = {
  refused: 'refused the request',
  too_large: 'found the request too large',
  busy: 'was busy',
  timeout: 'did not answer in time',
  stopped: 'our gateway was stopping',
  failed: 'failed',
};

/** "the limit of tokens per minute of the key (1000; 12 left, 500 needed), until …" */
export function hindrance({ what, scope, limit, remaining, needs, until }: Obstacle): string {
  const whose = scope === undefined ? '' : ` (${scope})`;
  const numbers = [
    limit === undefined ? [] : [`limit ${limit}`],
    remaining === undefined ? [] : [`${remaining} left`],
    needs === undefined ? [] : [`${needs} tokens needed`],
    until === undefined ? [] : [`until ${until}`],
  ].flat();
  return [`${WHAT[what]}${whose}`, ...numbers].join(', ');
}

/** Why a request has no usage. */
export function refusal({ by, code, model, param, heldNanos, failed }: RefusedRequest, currency: string): string {
  if (by) return hindrance(by);
  if (code === 'client_closed') return 'its client left before any output';
  if (failed) return 'no backend gave an answer';
  if (heldNanos !== undefined)
    return `it failed before any output; its hold of ${formatNanos(heldNanos, currency)} was released`;
  if (code === 'invalid_json') return 'its body is not JSON';
  if (code === 'model_not_found')
    return `its model${model === undefined ? '' : ` ${printable(model)}`} does not exist, or the key may not use it`;
  if (param !== undefined) return `its parameter ${printable(param)} was refused`;
  return 'the request itself was at fault, or could not be taken';
}

export function attempts(failed: readonly FailedAttempt[]): string {
  return failed.map(attempt).join('; ');
}

function attempt({ backend, why, status, code }: FailedAttempt): string {
  const detail = status !== undefined ? ` (status ${status})` : code !== undefined ? ` (${code})` : '';
  return backend === undefined ? WHY[why] : `${printable(backend)} ${WHY[why]}${detail}`;
}

const ENDS: Record<string, string> = {
  complete: 'complete: the whole answer was sent',
  client_closed: 'client_closed: the client left; what was delivered until then is charged',
  upstream_error: 'upstream_error: the backend broke off; what was delivered until then is charged',
  credit_ended: 'credit_ended: the credit or a budget paid for no further output',
  expired: 'expired: its gateway died or lost its hold; what it had recorded is charged',
};

/** How a request with usage ended, and what its client saw of that. */
export function endOf({ outcome, life }: ServedRequest, error: RefusedRequest | null): string {
  const what = ENDS[outcome] ?? outcome;
  if (life?.late)
    return outcome === 'complete'
      ? 'complete: all of the text was sent. Then the admission store did not answer: the stream ended with an error ' +
          'in place of its last event, and was settled later'
      : `${what}. The admission store did not answer then, so it was settled later`;
  if (!error || outcome !== 'complete') return what;
  return (
    'complete: the backend gave its whole answer. The admission store did not confirm the settlement in time, so the ' +
    `client got the error ${error.code} in place of the end. The settlement was recorded, so the request is charged`
  );
}
