import type { Call, RedisLink, Reply } from '@tollgate/redis';
import type { ItemFailure } from '../item-failures';

/** Elements of one function call: bounds how long Redis does nothing else (about 15 µs each). */
const MAX_ITEMS_PER_FUNCTION_CALL = 250;

/**
 * The five keys of a tenant, in the order in which the functions take them: one hash tag, so one slot
 * (lua/3_state.lua).
 */
export function tenantKeys(tenantId: string): string[] {
  const key = `tga:{${tenantId}}:`;
  return [`${key}credit`, `${key}keys`, `${key}pending`, `${key}settled`, `${key}unconfirmed`];
}

/** Reads a tenant that is not there. */
export const PROBE: Call = { function: 'snapshot', keys: tenantKeys('probe'), args: [] };

/** Some elements of one tenant that go in one function call; `positions` are theirs in the array of all. */
export interface Group<T> {
  tenantId: string;
  items: T[];
  positions: number[];
}

/** Per tenant, each in its order, in parts of at most MAX_ITEMS_PER_FUNCTION_CALL. */
function groupByTenant<T>(items: readonly T[], tenantOf: (item: T) => string): Group<T>[] {
  const groups: Group<T>[] = [];
  const last = new Map<string, Group<T>>();
  for (const [position, item] of items.entries()) {
    const tenantId = tenantOf(item);
    let group = last.get(tenantId);
    if (!group || group.items.length >= MAX_ITEMS_PER_FUNCTION_CALL) {
      groups.push((group = { tenantId, items: [], positions: [] }));
      last.set(tenantId, group);
    }
    group.items.push(item);
    group.positions.push(position);
  }
  return groups;
}

/**
 * One function call a group, all in one round trip; `read` makes an answer an element of a group's reply. A failure
 * stands in the place of each element of a group that failed. Rejects when all did.
 */
export async function callByTenant<T, R>(
  link: RedisLink,
  name: string,
  items: readonly T[],
  tenantOf: (item: T) => string,
  argsOf: (items: readonly T[]) => (string | number)[],
  read: (reply: Reply, group: Group<T>) => (R | ItemFailure)[],
): Promise<(R | ItemFailure)[]> {
  const groups = groupByTenant(items, tenantOf);
  const calls = groups.map(({ tenantId, items }): Call => {
    return { function: name, keys: tenantKeys(tenantId), args: argsOf(items) };
  });
  const replies = await link.call(calls);
  const [first] = replies;
  if (first instanceof Error && replies.every((reply) => reply instanceof Error)) throw first;
  const results = new Array<R | ItemFailure>(items.length);
  for (const [n, group] of groups.entries()) {
    const reply = replies[n];
    const answers = reply instanceof Error ? group.positions.map(() => reply) : read(reply, group);
    for (const [i, position] of group.positions.entries()) results[position] = answers[i]!;
  }
  return results;
}

/** For operations whose answers have no place for an Error: the call as a whole fails. Each may be repeated. */
export function allOrNothing<R>(results: readonly (R | ItemFailure)[]): R[] {
  for (const result of results) if (result instanceof Error) throw result;
  return results as R[];
}
