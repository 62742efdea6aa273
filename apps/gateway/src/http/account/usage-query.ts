import type { Static } from '@sinclair/typebox';
import type { UsageQuery as UsageRequest } from '@tollgate/contracts';
import { ApiError } from '../api-error';
import { parseInstant } from '../instant';
import { queryCheck } from '../validate';
import { OperatorUsageQuery, UsageQuery } from './schemas';

const checkQuery = queryCheck(UsageQuery);
const checkOperatorQuery = queryCheck(OperatorUsageQuery);

/** What an operator may group by. Owners and tags come from auth, not from the usage. */
export type OperatorGroup = Static<typeof OperatorUsageQuery>['groupBy'] extends (infer T)[] | undefined ? T : never;
type Read<Group> = Omit<UsageRequest, 'groupBy'> & { groupBy: Group[] };

/**
 * Turns the query string into the request to metering. The default range is this calendar month (UTC) until now. Error:
 * invalid_parameter, also when `from` is not before `to`.
 */
export function readUsageQuery(
  tenantId: string,
  query: Record<string, unknown>,
  nowMs: number,
): Read<Exclude<OperatorGroup, 'backend' | 'owner' | 'tag'>> {
  return read(checkQuery, tenantId, query, nowMs);
}

/** The same for an operator, who may group by more. */
export function readOperatorUsageQuery(
  tenantId: string,
  query: Record<string, unknown>,
  nowMs: number,
): Read<OperatorGroup> {
  return read(checkOperatorQuery, tenantId, query, nowMs);
}

function read<Group extends OperatorGroup>(
  check: (query: unknown) => Omit<Static<typeof UsageQuery>, 'groupBy'> & { groupBy?: Group[] },
  tenantId: string,
  query: Record<string, unknown>,
  nowMs: number,
): Read<Group> {
  // A repeated parameter is already a list.
  const groupBy = query['groupBy'] as string | string[] | undefined;
  const given = check({
    ...query,
    ...(groupBy !== undefined && { groupBy: [groupBy].flat().join(',').split(',') }),
  });
  const [from, to] = rangeOf(given.from, given.to, nowMs);
  return {
    tenantId,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    groupBy: given.groupBy ?? [],
    ...(given.model !== undefined && { model: given.model }),
    ...(given.keyId !== undefined && { keyId: given.keyId }),
  };
}

/** In milliseconds. The default is this calendar month (UTC) until now. Error: invalid_parameter. */
export function rangeOf(since: string | undefined, until: string | undefined, nowMs: number): [number, number] {
  const now = new Date(nowMs);
  const from = instant(since) ?? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  // In the first millisecond of a month, the range until now would be empty.
  const to = instant(until) ?? (since === undefined ? Math.max(nowMs, from + 1) : nowMs);
  if (from >= to)
    throw new ApiError(
      'invalid_parameter',
      'from must be before to. The default of from is the start of this calendar month (UTC). ' +
        'The default of to is the current time.',
    );
  return [from, to];
}

function instant(text: string | undefined): number | null {
  return text === undefined ? null : parseInstant(text);
}
