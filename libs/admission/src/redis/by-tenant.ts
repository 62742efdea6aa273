import type { Call, RedisLink, Reply } from '@tollgate/redis';
import type { ItemFailure } from '../item-failures';

/** Elements of one function call. Limits how long it blocks Redis (about 15 µs each). */
const MAX_ITEMS_PER_FUNCTION_CALL = 250;

/** A tenant's five keys, in the order of the functions' parameters. One hash tag, so one slot (lua/03_state.lua). */
export function tenantKeys(tenantId: string): string[] {
  const key = `tga:{${tenantId}}:`;
  return [`${key}credit`, `${key}keys`, `${key}pending`, `${key}settled`, `${key}unconfirmed`];
}

/** The same, and the four keys of its claims (lua/04_taken_claims.lua). Only for calls with a claim. */
export function claimKeys(tenantId: string): string[] {
  const key = `tga:{${tenantId}}:`;
  return [...tenantKeys(tenantId), `${key}claims`, `${key}claim_times`, `${key}answers`, `${key}answer_times`];
}

/** The five, and the key of the claims that a sweep settles without an answer. */
export function sweepKeys(tenantId: string): string[] {
  return claimKeys(tenantId).slice(0, tenantKeys(tenantId).length + 1);
}

/** Reads a tenant that does not exist. */
export const PROBE: Call = { function: 'snapshot', keys: tenantKeys('probe'), args: [] };

/** Elements of one tenant that go in one function call, with their positions in the array of all. */
export interface Group<T> {
  tenantId: string;
  items: T[];
  positions: number[];
}

/** Groups by tenant, in order, in parts of at most MAX_ITEMS_PER_FUNCTION_CALL. */
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
 * One function call for each group, all in one round trip. `read` turns a group's reply into its results. A failure
 * replaces every result of a group that failed. Rejects when all groups failed.
 */
export async function callByTenant<T, R>(
  link: RedisLink,
  name: string,
  items: readonly T[],
  tenantOf: (item: T) => string,
  argsOf: (items: readonly T[]) => (string | number)[],
  read: (reply: Reply, group: Group<T>) => (R | ItemFailure)[],
  /** Items that need the keys of claims. By default none does. */
  hasClaim: (item: T) => boolean = () => false,
): Promise<(R | ItemFailure)[]> {
  const groups = groupByTenant(items, tenantOf);
  const calls = groups.map(({ tenantId, items }): Call => {
    const keys = items.some(hasClaim) ? claimKeys(tenantId) : tenantKeys(tenantId);
    return { function: name, keys, args: argsOf(items) };
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

/** For operations whose results have no place for an Error: the whole call fails. Each operation may be repeated. */
export function allOrNothing<R>(results: readonly (R | ItemFailure)[]): R[] {
  for (const result of results) if (result instanceof Error) throw result;
  return results as R[];
}
