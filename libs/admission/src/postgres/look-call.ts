import type { LookRequest } from '../admission-store';
import type { Call } from './connections';
import { LIMITS } from './limits-parameters';
import { NamedCall } from './named-call';

/** The call of functions/look.sql. */
const LOOK = new NamedCall<LookRequest>(
  'look_batch',
  [['p_now_ms', 'bigint']],
  [
    ['p_tenant_id', 'text', ({ tenantId }) => tenantId],
    ['p_key_id', 'text', ({ keyId }) => keyId],
    ...LIMITS,
    ['p_is_paid', 'boolean', ({ isPaid }) => isPaid],
  ],
);

export const lookCall = (requests: readonly LookRequest[], nowMs: number | null): Call => LOOK.of(requests, [nowMs]);
