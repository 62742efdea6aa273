import type { LookRefusal, LookRequest, LookResult } from '../admission-store';
import type { Call, Row } from './connections';
import { LIMITS } from './limits-parameters';
import { NamedCall } from './named-call';

/** `look` of functions/look.sql. */
const LOOK = new NamedCall<LookRequest>(
  'look',
  [['p_now_ms', 'bigint']],
  [
    ['p_tenant_id', 'text', ({ tenantId }) => tenantId],
    ['p_key_id', 'text', ({ keyId }) => keyId],
    ...LIMITS,
    ['p_is_paid', 'boolean', ({ isPaid }) => isPaid],
  ],
);

export const lookCall = (requests: readonly LookRequest[], nowMs: number | null): Call => LOOK.of(requests, [nowMs]);

export function lookResult(row: Row): LookResult {
  const [, code, scope, retryMs, requestsLeft, requestsResetMs, tokensLeft, tokensResetMs] = row;
  const limits = {
    requestsRemaining: Number(requestsLeft),
    requestsResetMs: Number(requestsResetMs),
    tokensRemaining: Number(tokensLeft),
    tokensResetMs: Number(tokensResetMs),
  };
  if (code === null) return { kind: 'clear', limits };
  return {
    kind: 'refused',
    reason: code as LookRefusal['reason'],
    scope: scope as LookRefusal['scope'],
    retryAfterMs: retryMs === null ? null : Number(retryMs),
    limits,
  };
}
