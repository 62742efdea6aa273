import { Injectable } from '@nestjs/common';
import { query, transaction } from '@tollgate/postgres';
import { ConsoleDatabase } from '../database';
import { ConsoleOptions, type GroupRole } from '../options';
import { TENANT_ROLES, type TenantRole } from './roles';

interface Granted {
  isOperator: boolean;
  roleOf: ReadonlyMap<string, TenantRole>;
}

/** Gives people the roles of their groups at the provider, and takes back those that it gave before. */
@Injectable()
export class ProviderRoles {
  constructor(
    private readonly database: ConsoleDatabase,
    private readonly options: ConsoleOptions,
  ) {}

  /** At each sign-in by the provider, before the person has the session. A role of an invitation is not touched. */
  async set(userId: string, groups: readonly string[]): Promise<void> {
    const { isOperator, roleOf } = grantedTo(groups, this.options.oidc?.roles ?? []);
    await transaction(this.database.dataSource, async (tx) => {
      if (isOperator)
        await query(tx, 'INSERT INTO provider_operator (user_id) VALUES ($1) ON CONFLICT DO NOTHING', [userId]);
      else await query(tx, 'DELETE FROM provider_operator WHERE user_id = $1', [userId]);
      const tenants = [...roleOf.keys()];
      await query(tx, 'DELETE FROM membership WHERE user_id = $1 AND by_provider AND tenant_id <> ALL ($2)', [
        userId,
        tenants,
      ]);
      await query(
        tx,
        `INSERT INTO membership (user_id, tenant_id, role, by_provider)
         SELECT $1, tenant_id, role, true FROM unnest($2::text[], $3::text[]) AS granted (tenant_id, role)
         ON CONFLICT (user_id, tenant_id) DO UPDATE SET role = excluded.role WHERE membership.by_provider`,
        [userId, tenants, [...roleOf.values()]],
      );
    });
  }
}

/** The roles of some groups. Of several in one tenant, the one that comes first in TENANT_ROLES. */
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
