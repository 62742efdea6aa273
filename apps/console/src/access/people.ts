import { Injectable } from '@nestjs/common';
import { type Author, ifFound, toPage } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query, type Statements, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { Erasures } from './erasures';
import { lockOperators } from './operators';
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
    private readonly dataSource: ConsoleDataSource,
    private readonly services: ServiceClient,
    private readonly erasures: Erasures,
  ) {}

  /** By e-mail address. `search`: a part of the address or the name. `after`: an address. */
  async list({ limit, after = '', search = '' }: { limit: number; after?: string; search?: string }) {
    const rows = await query<Omit<PersonRow, 'createdAt'> & { createdAt: Date }>(
      this.dataSource,
      `SELECT u.id AS "userId", u.name, u.email, ${IS_OPERATOR} AS "isOperator", u."createdAt",
         EXISTS (SELECT 1 FROM "account" a WHERE a."userId" = u.id AND a."password" IS NOT NULL) AS "hasPassword",
         (SELECT count(*) FROM membership m WHERE m.user_id = u.id)::int AS tenants
       FROM "user" u
       WHERE u.email > $1 AND (strpos(lower(u.email), $2) > 0 OR strpos(lower(u.name), $2) > 0)
       ORDER BY u.email LIMIT $3`,
      [after, search.toLowerCase(), limit + 1],
    );
    const people = rows.map((row) => ({ ...row, createdAt: row.createdAt.toISOString() }));
    return toPage(people, limit, ({ email }) => email);
  }

  /** Error: not_found. */
  async idOf(email: string): Promise<string> {
    const sql = 'SELECT id FROM "user" WHERE email = $1';
    const [row] = await query<{ id: string }>(this.dataSource, sql, [email.toLowerCase()]);
    if (!row) throw new ConsoleError('not_found', 'No account has this address.');
    return row.id;
  }

  /** An account that single sign-on made has none. */
  async hasPassword(userId: string): Promise<boolean> {
    const sql = 'SELECT 1 FROM "account" WHERE "userId" = $1 AND "password" IS NOT NULL';
    return (await query(this.dataSource, sql, [userId])).length > 0;
  }

  /**
   * Deletes the account with all that belongs to it, and then takes name and address from the audit logs. The account
   * comes first: what ends its sessions is committed before the logs are cleaned, so nothing brings the name back.
   * Errors: not_found, last_operator, last_owner.
   */
  async erase(by: Author, userId: string): Promise<void> {
    const ownerless = await this.mayLoseOwner(userId);
    const erasure = await transaction(this.dataSource, async (tx) => {
      const { email } = await lockPerson(tx, userId);
      await requireOtherOperator(tx, userId);
      await lockOwners(tx, userId);
      const owned = await ownedAlone(tx, userId);
      // Another owner has left since.
      if (!owned.every((tenantId) => ownerless.has(tenantId))) throw new ConsoleError('last_owner');
      await query(tx, 'DELETE FROM invitation WHERE lower(email) = $1', [email]);
      await endSignIns(tx, userId);
      // Its passkeys, second factor, roles and links go with it.
      await query(tx, 'DELETE FROM "user" WHERE id = $1', [userId]);
      return this.erasures.begin(tx, by, { userId, email });
    });
    await this.erasures.forget(erasure);
  }

  /**
   * The tenants that the person owns alone and that need no owner: they are closed, or groups of a provider name them
   * and they do not exist. Error: last_owner.
   */
  private async mayLoseOwner(userId: string): Promise<ReadonlySet<string>> {
    const owned = await ownedAlone(this.dataSource, userId);
    for (const tenantId of owned) {
      const name = await this.nameOfOpen(tenantId);
      if (name !== null)
        throw new ConsoleError(
          'last_owner',
          `This is the last owner of ${name}. Make another member the owner, or have an operator close the tenant.`,
        );
    }
    return new Set(owned);
  }

  private async nameOfOpen(tenantId: string): Promise<string | null> {
    const tenant = await ifFound(this.services.request('auth.tenants.get', { tenantId }));
    return tenant === null || tenant.status === 'closed' ? null : tenant.name;
  }
}

/** Two owners of a tenant who leave at the same time must not leave it without one. */
async function lockOwners(tx: EntityManager, userId: string): Promise<void> {
  await query(
    tx,
    `SELECT 1 FROM membership
     WHERE role = 'owner' AND tenant_id IN (SELECT tenant_id FROM membership WHERE user_id = $1 AND role = 'owner')
     ORDER BY tenant_id, user_id FOR UPDATE`,
    [userId],
  );
}

async function ownedAlone(on: Statements, userId: string): Promise<string[]> {
  const rows = await query<{ tenantId: string }>(
    on,
    `SELECT tenant_id AS "tenantId" FROM membership WHERE role = 'owner'
       AND tenant_id IN (SELECT tenant_id FROM membership WHERE user_id = $1 AND role = 'owner')
     GROUP BY tenant_id HAVING count(*) = 1 ORDER BY tenant_id`,
    [userId],
  );
  return rows.map(({ tenantId }) => tenantId);
}

async function requireOtherOperator(tx: EntityManager, userId: string): Promise<void> {
  // The person's row is locked, so they do not become an operator now.
  if ((await query(tx, 'SELECT 1 FROM operator WHERE user_id = $1', [userId])).length === 0) return;
  await lockOperators(tx);
  const others = await query(tx, 'SELECT 1 FROM operator WHERE user_id <> $1 LIMIT 1', [userId]);
  if (others.length === 0) throw new ConsoleError('last_operator');
}
