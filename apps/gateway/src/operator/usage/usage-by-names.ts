import { type KeyNames, totalOf, type UsageGroup, type UsageGroupRow } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';
import type { OperatorGroup } from '../../http/account/usage-query';

/** Usage by owner and by tag. Metering knows only keys, and auth knows their names. */

export type NamedGroupRow = UsageGroupRow & { owner?: string | null; tag?: string | null };
/** Less than auth answers: tenants can give a thousand keys names and tags that do not fit into a message of Kafka. */
const NAMES_AT_ONCE = 400;
/** In sorting order. */
const FIELDS = ['day', 'hour', 'model', 'backend', 'owner', 'tag', 'key'] as const;

/** What metering must group by, so that owners and tags can be found. */
export function groupsOfUsage(groupBy: readonly OperatorGroup[]): UsageGroup[] {
  const own = groupBy.filter((group) => group !== 'owner' && group !== 'tag');
  return own.length === groupBy.length || own.includes('key') ? own : [...own, 'key'];
}

/** The names of keys by their ids. Unknown keys are left out. */
export async function namesOfKeys(
  services: Pick<ServiceClient, 'request'>,
  ids: ReadonlySet<string>,
): Promise<Map<string, KeyNames>> {
  const names = new Map<string, KeyNames>();
  const all = [...ids];
  for (let from = 0; from < all.length; from += NAMES_AT_ONCE) {
    const { data } = await services.request('auth.keys.names', { ids: all.slice(from, from + NAMES_AT_ONCE) });
    for (const key of data) names.set(key.id, key);
  }
  return names;
}

/** Puts groups of keys together by owner or tag. A key with several tags is in the group of each. */
export function byNames(
  rows: readonly UsageGroupRow[],
  groupBy: readonly OperatorGroup[],
  names: ReadonlyMap<string, KeyNames>,
): NamedGroupRow[] {
  const groups = new Map<string, { fields: Partial<NamedGroupRow>; rows: UsageGroupRow[] }>();
  for (const row of rows) {
    const key = names.get(row.key!);
    const tags = groupBy.includes('tag') ? (key && key.tags.length > 0 ? key.tags : [null]) : [undefined];
    for (const tag of tags) {
      const all: Partial<NamedGroupRow> = { ...row, owner: key?.owner ?? null, ...(tag !== undefined && { tag }) };
      const fields = Object.fromEntries(
        FIELDS.filter((field) => groupBy.includes(field)).map((field) => [field, all[field]]),
      );
      const name = JSON.stringify(Object.values(fields));
      const group = groups.get(name) ?? { fields, rows: [] as UsageGroupRow[] };
      group.rows.push(row);
      groups.set(name, group);
    }
  }
  const sorted = [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
  const { parts } = totalOf(sorted.map((group) => totalOf(group.rows).totals));
  return parts.map((numbers, index) => ({ ...sorted[index]!.fields, ...numbers }));
}
