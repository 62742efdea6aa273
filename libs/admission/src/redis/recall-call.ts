import type { UnavailableError } from '@tollgate/contracts';
import type { RedisLink } from '@tollgate/redis';
import type { AnswerRequest, RecallRequest, RecallResult } from '../admission-store';
import { readRecall, type Value } from '../store-answers';
import { callByTenant } from './by-tenant';

const VALUES_PER_RESULT = 4;

/** The call of the function `recall` (lua/04_taken_claims.lua). */
export function callRecall(
  link: RedisLink,
  requests: readonly RecallRequest[],
  now: number | '',
  keepMs: number,
): Promise<(RecallResult | UnavailableError)[]> {
  return callByTenant<RecallRequest, RecallResult>(
    link,
    'recall',
    requests,
    ({ tenantId }) => tenantId,
    (items) => [now, keepMs, ...items.map(({ claimId }) => claimId)],
    (reply, { items }) =>
      items.map((_, i) => readRecall((reply as Value[]).slice(i * VALUES_PER_RESULT, (i + 1) * VALUES_PER_RESULT))),
    () => true,
  );
}

/** The call of the function `claim_answers` (lua/04_taken_claims.lua). */
export function callAnswers(
  link: RedisLink,
  requests: readonly AnswerRequest[],
): Promise<(string | null | UnavailableError)[]> {
  return callByTenant<AnswerRequest, string | null>(
    link,
    'claim_answers',
    requests,
    ({ tenantId }) => tenantId,
    (items) => items.flatMap(({ claimId, fingerprint }) => [claimId, fingerprint]),
    (reply) => (reply as Value[]).map((answer) => (answer ?? null) as string | null),
    () => true,
  );
}
