import type { RedisLink } from '@tollgate/redis';
import type { LookRequest, LookResult } from '../admission-store';
import { lookMistake } from '../caller-mistakes';
import { sendFaultless, type ItemFailure, type TenantUnknownError } from '../item-failures';
import { readLook, type Value } from '../store-answers';
import { callByTenant } from './by-tenant';
import { limitValues } from './json-arguments';

const VALUES_PER_RESULT = 11;

export interface LookContext {
  now: number | '';
  /** True: an unknown tenant gets `unknown` instead of a result. */
  mustBeKnown: boolean;
  /** The error for an unknown tenant. */
  unknown: (tenantId: string) => TenantUnknownError;
}

/**
 * The call of the function `look` (lua/08_look.lua). It does not register the tenant: a look leaves nothing to sweep.
 */
export function callLook(
  link: RedisLink,
  requests: readonly LookRequest[],
  { now, mustBeKnown, unknown }: LookContext,
): Promise<(LookResult | ItemFailure)[]> {
  return sendFaultless(requests, lookMistake, (sent) =>
    callByTenant<LookRequest, LookResult>(
      link,
      'look',
      sent,
      ({ tenantId }) => tenantId,
      (items) => [now, mustBeKnown ? '1' : '0', JSON.stringify(items.map(toArray))],
      (reply, { tenantId, items }) => readReply(reply) ?? new Array<ItemFailure>(items.length).fill(unknown(tenantId)),
    ),
  );
}

/** Null: the books have not been asked for this tenant yet. */
function readReply(reply: unknown): LookResult[] | null {
  const values = reply as Value[];
  if (values[0] === 'unknown') return null;
  const results: LookResult[] = [];
  for (let at = 0; at < values.length; at += VALUES_PER_RESULT)
    results.push(readLook(values.slice(at, at + VALUES_PER_RESULT)));
  return results;
}

function toArray(request: LookRequest): unknown[] {
  return [request.keyId, ...limitValues(request), request.isPaid];
}
