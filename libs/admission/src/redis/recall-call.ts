import type { UnavailableError } from '@tollgate/contracts';
import type { RedisLink } from '@tollgate/redis';
import type { AnswerRequest, RecallRequest, RecallResult } from '../admission-store';
import { readRecall, type Value } from '../store-answers';
import { callByTenant, tenantKeys } from './by-tenant';
import { REPLICAS_TIMEOUT_MS } from './probe-writes';

const VALUES_PER_RESULT = 4;

/**
 * The call of the function `recall` (lua/04_taken_claims.lua). With `settledReplicas`, a settled claim is returned once
 * these have it: until then a failover can lose the settlement, and its answer must not be given.
 */
export async function callRecall(
  link: RedisLink,
  requests: readonly RecallRequest[],
  now: number | '',
  keepMs: number,
  settledReplicas: number,
): Promise<(RecallResult | UnavailableError)[]> {
  const results = await callByTenant<RecallRequest, RecallResult>(
    link,
    settledReplicas > 0 ? 'recall_written' : 'recall',
    requests,
    ({ tenantId }) => tenantId,
    (items) => [now, keepMs, ...items.map(({ claimId }) => claimId)],
    (reply, { items }) =>
      items.map((_, i) => readRecall((reply as Value[]).slice(i * VALUES_PER_RESULT, (i + 1) * VALUES_PER_RESULT))),
    () => true,
  );
  const isSettled = results.map((result) => !(result instanceof Error) && result.kind === 'settled');
  if (settledReplicas === 0 || !isSettled.includes(true)) return results;
  const keys = requests.map(({ tenantId }) => tenantKeys(tenantId)[0]!);
  const missed = await link.waitForReplicas(keys, settledReplicas, REPLICAS_TIMEOUT_MS);
  return results.map((result, i) => (isSettled[i] ? (missed[i] ?? result) : result));
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
