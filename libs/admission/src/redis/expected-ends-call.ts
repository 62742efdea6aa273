import type { UnavailableError } from '@tollgate/contracts';
import type { RedisLink } from '@tollgate/redis';
import type { ExpectedEnd } from '../operations/expected-ends';
import type { Value } from '../store-answers';
import { callByTenant } from './by-tenant';

/** The call of the function `expected_ends` (lua/07_hold_lengths.lua). */
export function callExpectedEnds(
  link: RedisLink,
  tenantIds: readonly string[],
  now: number | '',
): Promise<(ExpectedEnd[] | UnavailableError)[]> {
  return callByTenant<string, ExpectedEnd[]>(
    link,
    'expected_ends',
    tenantIds,
    (tenantId) => tenantId,
    () => [now],
    (reply, { items }) => items.map(() => readEnds(reply as Value[])),
  );
}

function readEnds(values: readonly Value[]): ExpectedEnd[] {
  const ends: ExpectedEnd[] = [];
  for (let at = 0; at < values.length; at += 2)
    ends.push({ keyId: values[at] as string, endsInMs: Number(values[at + 1]) });
  return ends;
}
