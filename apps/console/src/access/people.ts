import { Injectable } from '@nestjs/common';
import { type Author, RequestError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDatabase } from '../database';
import { ConsoleError } from '../http/errors';
import { endSignIns, lockPerson } from './recoveries';

/** A person with an account. */
export interface PersonRow {
  userId: string;
  name: string;
  email: string;
  isOperator: boolean;
  hasPassword: boolean;
  tenants: number;
  createdAt: string;
}

const IS_OPERATOR = `EXISTS (SELECT 1 FROM operator o WHERE o.user_id = u.id)
  OR EXISTS (SELECT 1 FROM provider_operator p WHERE p.user_id = u.id)`;

/** Everybody who has an account, and the end of one. */
@Injectable()
export class People {
  constructor(
    private readonly database: ConsoleDatabase,
    private readonly services: ServiceClient,
  ) {}

  /** By e-mail address. `search`: a part of the address or the name. `after`: an address. */
  async list({ limit, after = '', search = '' }: { limit: number; after?: string; search?: string }) {
    const rows = await query<Omit<PersonRow, 'createdAt'> & { createdAt: Date }>(
      this.database.dataSource,
      `SELECT u.id AS "userId", u.name, u.email, ${IS_OPERATOR} AS "isOperator", u."createdAt",
         EXISTS (SELECT 1 FROM "account" a WHERE a."userId" = u.id AND a."password" IS NOT NULL) AS "hasPassword",
         (SELECT count(*) FROM membership m WHERE m.user_id = u.id)::int AS tenants
       FROM "user" u
       WHERE u.email > $1 AND (strpos(lower(u.email), $2) > 0 OR strpos(lower(u.name), $2) > 0)
       ORDER BY u.email LIMIT $3`,
      [after, search.toLowerCase(), limit + 1],
    );
    const data = rows.slice(0, limit).map((row) => ({ ...row, createdAt: row.createdAt.toISOString() }));
    return { data, nextCursor: rows.length > limit ? data.at(-1)!.email : null };
  }

  /** Error: not_found. */
  async idOf(email: string): Promise<string> {
    const sql = 'SELECT id FROM "user" WHERE email = $1';
    const [row] = await query<{ id: string }>(this.database.dataSource, sql, [email.toLowerCase()]);
    if (!row) throw new ConsoleError('not_found');
    return row.id;
  }

  /**
   * Deletes the account with all that belongs to it, and takes name and address from the audit logs. The logs come
   * first: a service that is away leaves the account as it was, and a repeat ends what was begun. Errors: not_found,
   * last_operator, last_owner.
   */
  async erase(by: Author, userId: string): Promise<void> {
    await transaction(this.database.dataSource, async (tx) => {
      // Like Operators.remove: two who leave at the same time must not leave none.
      await query(tx, 'LOCK TABLE operator IN SHARE ROW EXCLUSIVE MODE');
      const { email } = await lockPerson(tx, userId);
      await requireOtherOperator(tx, userId);
      await this.requireOtherOwners(tx, userId);
      await query(tx, 'DELETE FROM invitation WHERE lower(email) = $1', [email]);
      await endSignIns(tx, userId);
      // Its passkeys, second factor, roles and links go with it.
      await query(tx, 'DELETE FROM "user" WHERE id = $1', [userId]);
      await this.services.request('billing.people.erase', { userId });
      await this.services.request('auth.people.erase', { by, userId, email });
    });
  }

  /** A tenant that is closed, or that groups of a provider name and that does not exist, needs no owner. */
  private async requireOtherOwners(tx: EntityManager, userId: string): Promise<void> {
    const owners = await query<{ tenantId: string; userId: string }>(
      tx,
      `SELECT tenant_id AS "tenantId", user_id AS "userId" FROM membership
       WHERE role = 'owner' AND tenant_id IN (SELECT tenant_id FROM membership WHERE user_id = $1 AND role = 'owner')
       ORDER BY tenant_id, user_id FOR UPDATE`,
      [userId],
    );
    const shared = new Set(owners.filter((owner) => owner.userId !== userId).map(({ tenantId }) => tenantId));
    for (const { tenantId } of owners) {
      if (shared.has(tenantId)) continue;
      const name = await this.nameOfOpen(tenantId);
      if (name !== null)
        throw new ConsoleError(
          'last_owner',
          `This is the last owner of ${name}. Make another member the owner, or have an operator close the tenant.`,
        );
    }
  }

  private async nameOfOpen(tenantId: string): Promise<string | null> {
    try {
      const { name, status } = await this.services.request('auth.tenants.get', { tenantId });
      return status === 'closed' ? null : name;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'not_found') return null;
      throw error;
    }
  }
}

async function requireOtherOperator(tx: EntityManager, userId: string): Promise<void> {
  const operators = await query<{ userId: string }>(tx, 'SELECT user_id AS "userId" FROM operator');
  if (operators.length === 1 && operators[0]!.userId === userId) throw new ConsoleError('last_operator');
}
