import { Injectable } from '@nestjs/common';
import type { Author, Page } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { Changes } from './changes';
import type { TenantRole } from './roles';
import { cursorParts, microsOf, timedPage, type TimedPageQuery } from './timed-pages';

/** A person in a tenant. */
export interface MemberRow {
  userId: string;
  name: string;
  email: string;
  role: TenantRole;
  createdAt: string;
}

/**
 * Throws if the caller may not change a member, or withdraw an invitation, of the role `present`. `own`: the role of
 * the caller in the tenant when the change is made. Null: none.
 */
export type MayChange = (present: TenantRole, own: TenantRole | null) => void;

/** Who belongs to which tenant, in which role, and who is an operator. */
@Injectable()
export class Members {
  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly changes: Changes,
  ) {}

  async isOperator(userId: string): Promise<boolean> {
    const rows = await query(
      this.dataSource,
      'SELECT 1 FROM operator WHERE user_id = $1 UNION ALL SELECT 1 FROM provider_operator WHERE user_id = $1',
      [userId],
    );
    return rows.length > 0;
  }

  /** Whether anybody can run the installation yet, by invitation or by a group of the provider. */
  async hasOperator(): Promise<boolean> {
    const sql = 'SELECT 1 FROM operator UNION ALL SELECT 1 FROM provider_operator LIMIT 1';
    return (await query(this.dataSource, sql)).length > 0;
  }

  async roleOf(userId: string, tenantId: string): Promise<TenantRole | null> {
    const [row] = await query<{ role: TenantRole }>(
      this.dataSource,
      'SELECT role FROM membership WHERE user_id = $1 AND tenant_id = $2',
      [userId, tenantId],
    );
    return row?.role ?? null;
  }

  /** The tenants of a person, the oldest membership first. */
  tenantsOf(userId: string): Promise<{ tenantId: string; role: TenantRole }[]> {
    return query(
      this.dataSource,
      `SELECT tenant_id AS "tenantId", role FROM membership WHERE user_id = $1 ORDER BY created_at, tenant_id`,
      [userId],
    );
  }

  /** The members of a tenant, the oldest membership first. */
  async list(tenantId: string, { limit, after }: TimedPageQuery): Promise<Page<MemberRow>> {
    const micros = microsOf('m.created_at');
    const rows = await query<Omit<MemberRow, 'createdAt'> & { createdAt: Date; micros: string }>(
      this.dataSource,
      `SELECT u.id AS "userId", u.name, u.email, m.role, m.created_at AS "createdAt", ${micros} AS micros
       FROM membership m JOIN "user" u ON u.id = m.user_id
       WHERE m.tenant_id = $1 AND ($2::bigint IS NULL OR (${micros}, u.id) > ($2::bigint, $3::text))
       ORDER BY m.created_at, u.id LIMIT $4`,
      [tenantId, ...cursorParts(after), limit + 1],
    );
    return timedPage(rows, limit, {
      idOf: ({ userId }) => userId,
      shown: (row) => ({ ...row, createdAt: row.createdAt.toISOString() }),
    });
  }

  /** The ids of the members among `people`, which are ids or e-mail addresses. */
  async idsAmong(tenantId: string, people: readonly string[]): Promise<string[]> {
    const rows = await query<{ userId: string }>(
      this.dataSource,
      `SELECT u.id AS "userId" FROM membership m JOIN "user" u ON u.id = m.user_id
       WHERE m.tenant_id = $1 AND (u.id = ANY ($2::text[]) OR u.email = ANY ($2::text[]))`,
      [tenantId, people],
    );
    return rows.map(({ userId }) => userId);
  }

  /** Errors: not_found, last_owner, and the errors of `mayChange`. */
  async setRole(
    by: Author,
    { tenantId, userId, role }: { tenantId: string; userId: string; role: TenantRole },
    mayChange: MayChange,
  ): Promise<void> {
    await this.changeMember({ by, tenantId, userId, mayChange }, async (tx, member) => {
      if (member.role === role) return;
      if (member.isLastOwner) throw new ConsoleError('last_owner');
      await query(tx, 'UPDATE membership SET role = $3 WHERE tenant_id = $1 AND user_id = $2', [
        tenantId,
        userId,
        role,
      ]);
      const { name } = member;
      const fields = { before: { name, role: member.role }, after: { name, role } };
      await this.changes.record(by, { action: 'member.update', target: userId, tenantId, ...fields });
    });
  }

  /**
   * Other invitations of the person to the tenant end, too: nobody comes back by one. Errors: not_found, last_owner,
   * and the errors of `mayChange`.
   */
  async remove(by: Author, tenantId: string, userId: string, mayChange: MayChange): Promise<void> {
    await this.changeMember({ by, tenantId, userId, mayChange }, async (tx, { name, role, isLastOwner }) => {
      if (isLastOwner) throw new ConsoleError('last_owner');
      await query(tx, 'DELETE FROM membership WHERE tenant_id = $1 AND user_id = $2', [tenantId, userId]);
      const ended = await query(
        tx,
        'DELETE FROM invitation WHERE tenant_id = $1 AND lower(email) = $2 AND used_at IS NULL RETURNING id',
        [tenantId, name],
      );
      const before = { name, role, ...(ended.length > 0 && { invitations: ended.length }) };
      await this.changes.record(by, { action: 'member.remove', target: userId, tenantId, before });
    });
  }

  /**
   * Two owners who remove each other at the same time must not leave the tenant without one. So its owners are locked.
   * So are the member, who may have become an owner since the request began, and the caller, who may have lost the
   * role. Errors: not_found, and the errors of `mayChange`.
   */
  private async changeMember(
    { by, tenantId, userId, mayChange }: { by: Author; tenantId: string; userId: string; mayChange: MayChange },
    change: (tx: EntityManager, member: { name: string; role: TenantRole; isLastOwner: boolean }) => Promise<void>,
  ): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      const locked = await query<{ userId: string; name: string; role: TenantRole }>(
        tx,
        `SELECT m.user_id AS "userId", m.role, u.email AS name FROM membership m JOIN "user" u ON u.id = m.user_id
         WHERE m.tenant_id = $1 AND (m.role = 'owner' OR m.user_id IN ($2, $3)) ORDER BY m.user_id FOR UPDATE OF m`,
        [tenantId, userId, by.id],
      );
      const member = locked.find((row) => row.userId === userId);
      if (!member) throw new ConsoleError('not_found');
      mayChange(member.role, locked.find((row) => row.userId === by.id)?.role ?? null);
      const owners = locked.filter(({ role }) => role === 'owner');
      await change(tx, { ...member, isLastOwner: owners.length === 1 && member.role === 'owner' });
    });
  }
}
