import { Injectable } from '@nestjs/common';
import { type Author, hashInvitationSecret, mintInvitationSecret, newId } from '@tollgate/contracts';
import { query, sqlState, type Statements, transaction, UNIQUE_VIOLATION } from '@tollgate/postgres';
import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { SignIn } from '../sign-in/sign-in';
import { Changes, type Origin, personAs } from './changes';
import type { MayChange } from './members';
import { mayGrant, TENANT_ROLES, type TenantRole } from './roles';

export const OPERATOR_LINK_MS = 10 * 60_000;
const INVITATION_MS = 7 * 24 * 60 * 60_000;
/** Invitations of a tenant that can still be accepted. */
export const MAX_OPEN_INVITATIONS = 200;
/** Pairs of the role of a member and one that it may give. */
const GRANTS = TENANT_ROLES.flatMap((role) =>
  TENANT_ROLES.filter((granted) => mayGrant(role, granted)).map((granted) => `'${role} ${granted}'`),
);
/**
 * True while the maker may still give its role: a removed person must not come back by a link. Links for operators come
 * from the operator API. The maker of any other is a person, or an account that has ended.
 */
const MAKER_MAY = `(i.operator
  OR EXISTS (SELECT 1 FROM operator o WHERE o.user_id = i.invited_by)
  OR EXISTS (SELECT 1 FROM provider_operator p WHERE p.user_id = i.invited_by)
  OR EXISTS (SELECT 1 FROM membership m WHERE m.user_id = i.invited_by AND m.tenant_id = i.tenant_id
    AND m.role || ' ' || i.role IN (${GRANTS.join(', ')})))`;
const IS_OPEN = `i.used_at IS NULL AND i.expires_at > now() AND ${MAKER_MAY}`;

/** What an invitation gives to the person who accepts it. */
export interface Invited {
  email: string | null;
  operator: boolean;
  tenantId: string | null;
  role: TenantRole | null;
}

interface Used extends Invited {
  id: string;
}

export interface InvitationRow extends Invited {
  id: string;
  createdAt: string;
  expiresAt: string;
}

/** Links that create accounts and memberships. Each works once. Only the hash of its secret is stored. */
@Injectable()
export class Invitations {
  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly signIn: SignIn,
    private readonly changes: Changes,
  ) {}

  /**
   * The link of a new invitation to a tenant. Its secret is in the fragment, which browsers never send, so no log has
   * it. Only this answer has the link. Error: too_many_invitations.
   */
  async create(
    by: Author,
    { tenantId, email, role }: { tenantId: string; email: string; role: TenantRole },
  ): Promise<{ id: string; link: string; expiresAt: string }> {
    const id = newId('inv');
    const { secret, hash } = mintInvitationSecret();
    const { url, expiresAt } = await transaction(this.dataSource, async (tx) => {
      await requireRoom(tx, tenantId);
      const after = { name: email, role };
      await this.changes.record(by, { action: 'invitation.create', target: id, tenantId, after });
      const invited = { email, operator: false, tenantId, role };
      return this.store({ id, hash }, invited, { invitedBy: by.id, lifetimeMs: INVITATION_MS }, tx);
    });
    return { id, link: `${url}#${secret}`, expiresAt };
  }

  /** An invitation whose secret the caller keeps. `url`: its link without the secret. */
  async store(
    { id, hash }: { id: string; hash: string },
    invited: Invited,
    { invitedBy, lifetimeMs }: { invitedBy: string | null; lifetimeMs: number },
    on: Statements = this.dataSource,
  ): Promise<{ url: string; expiresAt: string }> {
    const expiresAt = new Date(Date.now() + lifetimeMs);
    // Their addresses are of people who may never have had an account.
    await query(on, 'DELETE FROM invitation WHERE expires_at <= now()');
    await query(
      on,
      `INSERT INTO invitation (id, token_hash, email, operator, tenant_id, role, invited_by, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [id, hash, invited.email, invited.operator, invited.tenantId, invited.role, invitedBy, expiresAt],
    );
    return { url: `${this.signIn.origin}/console/invitation`, expiresAt: expiresAt.toISOString() };
  }

  /** The link of the invitation was sent to its address, and nobody else has it. */
  async noteMailed(id: string): Promise<void> {
    await query(this.dataSource, 'UPDATE invitation SET mailed = true WHERE id = $1', [id]);
  }

  /** The invitations of a tenant that can still be accepted, newest first. */
  async list(tenantId: string): Promise<InvitationRow[]> {
    const rows = await query<Invited & { id: string; createdAt: Date; expiresAt: Date }>(
      this.dataSource,
      `SELECT id, email, operator, tenant_id AS "tenantId", role, created_at AS "createdAt", expires_at AS "expiresAt"
       FROM invitation i WHERE i.tenant_id = $1 AND ${IS_OPEN} ORDER BY created_at DESC, id`,
      [tenantId],
    );
    return rows.map((row) => ({
      ...row,
      createdAt: row.createdAt.toISOString(),
      expiresAt: row.expiresAt.toISOString(),
    }));
  }

  /**
   * The caller's membership is locked first: the caller may have lost the role since the request began. Errors:
   * not_found, and the errors of `mayWithdraw`.
   */
  async withdraw(by: Author, tenantId: string, id: string, mayWithdraw: MayChange): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      const [own] = await query<{ role: TenantRole }>(
        tx,
        'SELECT role FROM membership WHERE tenant_id = $1 AND user_id = $2 FOR SHARE',
        [tenantId, by.id],
      );
      // An invitation to a tenant has a role.
      const [row] = await query<{ name: string | null; role: TenantRole }>(
        tx,
        'SELECT email AS name, role FROM invitation WHERE tenant_id = $1 AND id = $2 AND used_at IS NULL FOR UPDATE',
        [tenantId, id],
      );
      if (!row) throw new ConsoleError('not_found');
      mayWithdraw(row.role, own?.role ?? null);
      await query(tx, 'DELETE FROM invitation WHERE id = $1', [id]);
      await this.changes.record(by, { action: 'invitation.withdraw', target: id, tenantId, before: { ...row } });
    });
  }

  /** What a link gives. Error: invitation_invalid. */
  async look(secret: string): Promise<Invited> {
    const [row] = await query<Invited>(
      this.dataSource,
      `SELECT email, operator, tenant_id AS "tenantId", role FROM invitation i
       WHERE i.token_hash = $1 AND ${IS_OPEN}`,
      [hashInvitationSecret(secret)],
    );
    if (!row) throw new ConsoleError('invitation_invalid');
    return row;
  }

  /** Gives a signed-in person what the link gives. Errors: invitation_invalid, forbidden (of another address). */
  async acceptAs(person: { userId: string; email: string }, secret: string, from: Origin): Promise<Invited> {
    return transaction(this.dataSource, async (tx) => {
      const invited = await use(tx, secret);
      if (invited.email !== null && invited.email !== person.email)
        throw new ConsoleError('forbidden', `This invitation is for ${invited.email}. Sign in with that address.`);
      return this.grant(tx, personAs(person.userId, person.email, from), invited);
    });
  }

  /**
   * Creates an account, and gives it what the link gives. Nothing is left behind when one of them fails. Errors:
   * invitation_invalid, account_exists.
   */
  async acceptAsNew(
    person: { name: string; email: string; password: string },
    secret: string,
    from: Origin,
  ): Promise<Invited> {
    // Before the work of hashing, which is for holders of a link only.
    await this.look(secret);
    const { password } = await this.signIn.auth.$context;
    const passwordHash = await password.hash(person.password);
    try {
      return await transaction(this.dataSource, async (tx) => {
        const { mailed, ...invited } = await use(tx, secret);
        const userId = randomUUID();
        const email = (invited.email ?? person.email).toLowerCase();
        // A link that came by another way than mail says nothing about the address.
        await query(tx, `INSERT INTO "user" ("id", "name", "email", "emailVerified") VALUES ($1, $2, $3, $4)`, [
          userId,
          person.name,
          email,
          mailed,
        ]);
        await query(
          tx,
          `INSERT INTO "account" ("id", "accountId", "providerId", "userId", "password", "updatedAt")
           VALUES ($1, $2, 'credential', $2, $3, now())`,
          [randomUUID(), userId, passwordHash],
        );
        return { ...(await this.grant(tx, personAs(userId, email, from), invited)), email };
      });
    } catch (error) {
      if (sqlState(error) === UNIQUE_VIOLATION) throw new ConsoleError('account_exists');
      throw error;
    }
  }

  /** A person who is in the tenant already keeps the role. */
  private async grant(tx: EntityManager, person: Author & { id: string }, invited: Used): Promise<Invited> {
    const { id, email, operator, tenantId, role } = invited;
    const userId = person.id;
    const after = { name: person.name, invitation: id };
    const add = async (sql: string, values: unknown[]) =>
      (await query(tx, `${sql} ON CONFLICT DO NOTHING RETURNING user_id`, values)).length > 0;
    if (operator && (await add('INSERT INTO operator (user_id) VALUES ($1)', [userId])))
      await this.changes.record(person, { action: 'operator.add', target: userId, after });
    const membership = 'INSERT INTO membership (user_id, tenant_id, role) VALUES ($1, $2, $3)';
    if (tenantId !== null && (await add(membership, [userId, tenantId, role])))
      await this.changes.record(person, { action: 'member.add', target: userId, tenantId, after: { ...after, role } });
    return { email, operator, tenantId, role };
  }
}

/** Of two invitations at the same time, the second one waits for the first one, and then counts it. */
async function requireRoom(tx: EntityManager, tenantId: string): Promise<void> {
  await query(tx, `SELECT pg_advisory_xact_lock(hashtextextended('tollgate-console-invitations ' || $1, 0))`, [
    tenantId,
  ]);
  const sql = `SELECT 1 FROM invitation i WHERE i.tenant_id = $1 AND ${IS_OPEN} LIMIT $2`;
  const open = await query(tx, sql, [tenantId, MAX_OPEN_INVITATIONS]);
  if (open.length === MAX_OPEN_INVITATIONS)
    throw new ConsoleError(
      'too_many_invitations',
      `At most ${MAX_OPEN_INVITATIONS} invitations of a tenant can be open. Withdraw one, or wait until one is used ` +
        'or expires.',
    );
}

/** Marks the invitation as used. If two people accept it at the same time, one gets it. */
async function use(tx: EntityManager, secret: string): Promise<Used & { mailed: boolean }> {
  const [row] = await query<Used & { mailed: boolean }>(
    tx,
    `UPDATE invitation i SET used_at = now() WHERE i.token_hash = $1 AND ${IS_OPEN}
     RETURNING id, email, operator, tenant_id AS "tenantId", role, mailed`,
    [hashInvitationSecret(secret)],
  );
  if (!row) throw new ConsoleError('invitation_invalid');
  return row;
}
