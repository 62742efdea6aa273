import { Injectable } from '@nestjs/common';
import { changedRows, query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDatabase } from '../database';
import { ConsoleError } from '../http/errors';
import type { TenantRole } from './roles';

/** A person in a tenant. */
export interface MemberRow {
  userId: string;
  name: string;
  email: string;
  role: TenantRole;
  createdAt: string;
}

/** Who belongs to which tenant, in which role, and who is an operator. */
@Injectable()
export class Members {
  constructor(private readonly database: ConsoleDatabase) {}

  async isOperator(userId: string): Promise<boolean> {
    const rows = await query(
      this.database.dataSource,
      'SELECT 1 FROM operator WHERE user_id = $1 UNION ALL SELECT 1 FROM provider_operator WHERE user_id = $1',
      [userId],
    );
    return rows.length > 0;
  }

  /** Whether anybody can run the installation yet. */
  async hasOperator(): Promise<boolean> {
    return (await query(this.database.dataSource, 'SELECT 1 FROM operator LIMIT 1')).length > 0;
  }

  async roleOf(userId: string, tenantId: string): Promise<TenantRole | null> {
    const [row] = await query<{ role: TenantRole }>(
      this.database.dataSource,
      'SELECT role FROM membership WHERE user_id = $1 AND tenant_id = $2',
      [userId, tenantId],
    );
    return row?.role ?? null;
  }

  /** The tenants of a person, the oldest membership first. */
  tenantsOf(userId: string): Promise<{ tenantId: string; role: TenantRole }[]> {
    return query(
      this.database.dataSource,
      `SELECT tenant_id AS "tenantId", role FROM membership WHERE user_id = $1 ORDER BY created_at, tenant_id`,
      [userId],
    );
  }

  async list(tenantId: string): Promise<MemberRow[]> {
    const rows = await query<Omit<MemberRow, 'createdAt'> & { createdAt: Date }>(
      this.database.dataSource,
      `SELECT u.id AS "userId", u.name, u.email, m.role, m.created_at AS "createdAt"
       FROM membership m JOIN "user" u ON u.id = m.user_id WHERE m.tenant_id = $1 ORDER BY m.created_at, u.id`,
      [tenantId],
    );
    return rows.map((row) => ({ ...row, createdAt: row.createdAt.toISOString() }));
  }

  /** Errors: not_found, last_owner. */
  async setRole(tenantId: string, userId: string, role: TenantRole): Promise<void> {
    await this.changeMember(tenantId, userId, role === 'owner', (tx) =>
      changedRows(tx, 'UPDATE membership SET role = $3 WHERE tenant_id = $1 AND user_id = $2', [
        tenantId,
        userId,
        role,
      ]),
    );
  }

  /** Errors: not_found, last_owner. */
  async remove(tenantId: string, userId: string): Promise<void> {
    await this.changeMember(tenantId, userId, false, (tx) =>
      changedRows(tx, 'DELETE FROM membership WHERE tenant_id = $1 AND user_id = $2', [tenantId, userId]),
    );
  }

  /** Two owners who remove each other at the same time must not leave the tenant without one: its owners are locked. */
  private async changeMember(
    tenantId: string,
    userId: string,
    staysOwner: boolean,
    change: (tx: EntityManager) => Promise<number>,
  ): Promise<void> {
    await transaction(this.database.dataSource, async (tx) => {
      const owners = await query<{ userId: string }>(
        tx,
        `SELECT user_id AS "userId" FROM membership WHERE tenant_id = $1 AND role = 'owner'
         ORDER BY user_id FOR UPDATE`,
        [tenantId],
      );
      const isLastOwner = owners.length === 1 && owners[0]!.userId === userId;
      if (isLastOwner && !staysOwner) throw new ConsoleError('last_owner');
      if ((await change(tx)) === 0) throw new ConsoleError('not_found');
    });
  }
}
