import { Injectable } from '@nestjs/common';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';
import { ConsoleOptions, type GroupRole } from '../options';
import { type Change, Changes, type Origin, personAs } from './changes';
import { TENANT_ROLES, type TenantRole } from './roles';

interface Granted {
  isOperator: boolean;
  roleOf: ReadonlyMap<string, TenantRole>;
}

/** Gives people the roles of their groups at the OpenID Connect provider, and takes back those that it gave before. */
@Injectable()
export class ProviderRoles {
  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly options: ConsoleOptions,
    private readonly changes: Changes,
  ) {}

  /**
   * At each sign-in by the provider, before the person has the session. A role of an invitation is not touched.
   * UnavailableError: what has changed could not be logged, so nothing was changed.
   */
  async set(userId: string, groups: readonly string[], from: Origin): Promise<void> {
    const { isOperator, roleOf } = grantedTo(groups, this.options.oidc?.roles ?? []);
    await transaction(this.dataSource, async (tx) => {
      const [person] = await query<{ email: string }>(tx, 'SELECT email FROM "user" WHERE id = $1 FOR UPDATE', [
        userId,
      ]);
      const { email } = person!;
      const made: Change[] = [];
      const operators = isOperator
        ? 'INSERT INTO provider_operator (user_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING user_id'
        : 'DELETE FROM provider_operator WHERE user_id = $1 RETURNING user_id';
      if ((await query(tx, operators, [userId])).length > 0)
        made.push({
          action: isOperator ? 'operator.add' : 'operator.remove',
          target: userId,
          after: { byGroup: true },
        });
      made.push(...(await setMemberships(tx, userId, roleOf)));
      for (const change of made) await this.changes.record(personAs(userId, email, from), change);
    });
  }
}

/** Sets the memberships that come from groups to `roleOf`. Returns the changes. */
async function setMemberships(
  tx: EntityManager,
  userId: string,
  roleOf: ReadonlyMap<string, TenantRole>,
): Promise<Change[]> {
  const present = await query<{ tenantId: string; role: TenantRole; byProvider: boolean }>(
    tx,
    `SELECT tenant_id AS "tenantId", role, by_provider AS "byProvider" FROM membership WHERE user_id = $1 FOR UPDATE`,
    [userId],
  );
  const made: Change[] = [];
  for (const { tenantId, role, byProvider } of present) {
    if (!byProvider || roleOf.has(tenantId)) continue;
    await query(tx, 'DELETE FROM membership WHERE user_id = $1 AND tenant_id = $2', [userId, tenantId]);
    made.push({ action: 'member.remove', target: userId, tenantId, before: { role, byGroup: true } });
  }
  for (const [tenantId, role] of roleOf) {
    const before = present.find((row) => row.tenantId === tenantId);
    if (before !== undefined && (!before.byProvider || before.role === role)) continue;
    await query(
      tx,
      `INSERT INTO membership (user_id, tenant_id, role, by_provider) VALUES ($1, $2, $3, true)
       ON CONFLICT (user_id, tenant_id) DO UPDATE SET role = excluded.role WHERE membership.by_provider`,
      [userId, tenantId, role],
    );
    const after = { role, byGroup: true };
    if (before === undefined) made.push({ action: 'member.add', target: userId, tenantId, after });
    else made.push({ action: 'member.update', target: userId, tenantId, before: { role: before.role }, after });
  }
  return made;
}

/** The roles that these groups give: the strongest one per tenant, by the order of TENANT_ROLES. */
export function grantedTo(groups: readonly string[], roles: readonly GroupRole[]): Granted {
  const own = roles.filter(({ group }) => groups.includes(group));
  const roleOf = new Map<string, TenantRole>();
  for (const granted of own) {
    if ('operator' in granted) continue;
    const other = roleOf.get(granted.tenantId);
    if (other === undefined || TENANT_ROLES.indexOf(granted.role) < TENANT_ROLES.indexOf(other))
      roleOf.set(granted.tenantId, granted.role);
  }
  return { isOperator: own.some((granted) => 'operator' in granted), roleOf };
}
