import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { type Author, hashInvitationSecret, mintInvitationSecret } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { ConsoleDatabase } from '../database';
import { ConsoleError } from '../http/errors';
import { Mailer } from '../http/mailer';
import { SignIn } from '../sign-in/sign-in';
import { Changes, type Origin, personAs } from './changes';

const LINK_MS = 60 * 60_000;
/** Links that one person has got by mail and that still work. */
const MAX_MAILED = 3;
/** Requests whose mail is not sent yet. */
const MAX_PENDING = 100;

/** The person of a link that an owner made belongs to the tenant, and to nothing else. */
const OF_TENANT_ONLY = `EXISTS (SELECT 1 FROM membership m WHERE m.user_id = u.id AND m.tenant_id = r.tenant_id)
  AND NOT EXISTS (SELECT 1 FROM membership m WHERE m.user_id = u.id AND m.tenant_id <> r.tenant_id)
  AND NOT EXISTS (SELECT 1 FROM operator o WHERE o.user_id = u.id)
  AND NOT EXISTS (SELECT 1 FROM provider_operator p WHERE p.user_id = u.id)`;
const FOUND = `SELECT u.id AS "userId", u.email FROM recovery r JOIN "user" u ON u.id = r.user_id
  WHERE r.token_hash = $1 AND r.expires_at > now() AND (r.tenant_id IS NULL OR (${OF_TENANT_ONLY}))`;

interface Person {
  userId: string;
  email: string;
}

/** What people do who forgot their password: a link sets a new one. Only the hash of its secret is stored. */
@Injectable()
export class Recoveries implements BeforeApplicationShutdown {
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly database: ConsoleDatabase,
    private readonly signIn: SignIn,
    private readonly changes: Changes,
    private readonly mailer: Mailer,
  ) {}

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.pending);
  }

  /**
   * Mails a link, if a person with a password has this address. All of it happens after the answer, which so tells
   * nothing, also not by its time. Errors: mail_not_configured, rate_limited.
   */
  request(email: string): void {
    if (!this.mailer.isConfigured) throw new ConsoleError('mail_not_configured');
    if (this.pending.size >= MAX_PENDING) throw new ConsoleError('rate_limited');
    const work = this.mailLink(email)
      .catch((error: unknown) =>
        logger('console').warn({ reason: String(error) }, 'a link for a password was not mailed'),
      )
      .finally(() => this.pending.delete(work));
    this.pending.add(work);
  }

  /**
   * A link that somebody else makes. Only this answer has it. `tenantId`: its owner makes it, for a person who belongs
   * to this tenant only. Errors: not_found, no_password, forbidden.
   */
  async create(by: Author, userId: string, tenantId: string | null): Promise<{ link: string; expiresAt: string }> {
    const { secret, hash } = mintInvitationSecret();
    const { url, expiresAt } = await this.store(by, { userId, hash, tenantId });
    return { link: `${url}#${secret}`, expiresAt };
  }

  /** The same for a secret that the caller keeps. `url`: the link without it. */
  async store(
    by: Author | undefined,
    { userId, hash, tenantId }: { userId: string; hash: string; tenantId: string | null },
  ): Promise<{ url: string; expiresAt: string }> {
    return transaction(this.database.dataSource, async (tx) => {
      const person = await withPassword(tx, userId);
      const expiresAt = await insert(tx, { userId, hash, tenantId, mailed: false });
      if ((await query(tx, FOUND, [hash])).length === 0)
        throw new ConsoleError('forbidden', 'Only an operator can make a link for this person.');
      const after = { name: person.email };
      const change = { action: 'recovery.create', target: userId, after } as const;
      await this.changes.record(by, { ...change, ...(tenantId !== null && { tenantId }) });
      return { url: this.url, expiresAt };
    });
  }

  /** Whose password a link sets. Error: recovery_invalid. */
  async look(secret: string): Promise<Person> {
    const [person] = await query<Person>(this.database.dataSource, FOUND, [hashInvitationSecret(secret)]);
    if (!person) throw new ConsoleError('recovery_invalid');
    return person;
  }

  /**
   * Sets the password, and ends all links and sessions of the person. Passkeys and the second factor stay. Error:
   * recovery_invalid.
   */
  async use(secret: string, password: string, from: Origin): Promise<Person> {
    // Before the work of hashing, which is for holders of a link only.
    const { userId } = await this.look(secret);
    const passwordHash = await (await this.signIn.auth.$context).password.hash(password);
    return transaction(this.database.dataSource, async (tx) => {
      await lockPerson(tx, userId);
      const [person] = await query<Person>(tx, FOUND, [hashInvitationSecret(secret)]);
      if (!person) throw new ConsoleError('recovery_invalid');
      await query(tx, 'DELETE FROM recovery WHERE user_id = $1', [userId]);
      await query(
        tx,
        `UPDATE "account" SET "password" = $2, "updatedAt" = now()
         WHERE "userId" = $1 AND "providerId" = 'credential' AND "password" IS NOT NULL`,
        [userId, passwordHash],
      );
      await endSignIns(tx, userId);
      await this.changes.record(personAs(userId, person.email, from), { action: 'password.reset', target: userId });
      return person;
    });
  }

  private get url(): string {
    return `${this.signIn.origin}/console/reset-password`;
  }

  private async mailLink(email: string): Promise<void> {
    const { secret, hash } = mintInvitationSecret();
    const isMade = await transaction(this.database.dataSource, async (tx) => {
      const [person] = await query<{ userId: string }>(
        tx,
        `SELECT u.id AS "userId" FROM "user" u JOIN "account" a ON a."userId" = u.id
         WHERE u.email = $1 AND a."password" IS NOT NULL FOR UPDATE OF u`,
        [email],
      );
      if (!person) return false;
      const { userId } = person;
      const mailed = await query(
        tx,
        'SELECT 1 FROM recovery WHERE user_id = $1 AND mailed AND expires_at > now() LIMIT $2',
        [userId, MAX_MAILED],
      );
      if (mailed.length >= MAX_MAILED) return false;
      await insert(tx, { userId, hash, tenantId: null, mailed: true });
      return true;
    });
    if (isMade) await this.mailer.sendRecovery(email, `${this.url}#${secret}`);
  }
}

/** No session is left, and no sign-in that still waits for its second factor. */
export async function endSignIns(tx: EntityManager, userId: string): Promise<void> {
  await query(tx, 'DELETE FROM "session" WHERE "userId" = $1', [userId]);
  await query(tx, 'DELETE FROM "verification" WHERE strpos("value", $1) > 0', [userId]);
}

/** The changes of one person come one after the other. */
export async function lockPerson(tx: EntityManager, userId: string): Promise<{ email: string }> {
  const [person] = await query<{ email: string }>(tx, 'SELECT email FROM "user" WHERE id = $1 FOR UPDATE', [userId]);
  if (!person) throw new ConsoleError('not_found');
  return person;
}

/** Nobody makes a password for a person who has none: that person signs in by a provider. */
async function withPassword(tx: EntityManager, userId: string): Promise<{ email: string }> {
  const person = await lockPerson(tx, userId);
  const sql = 'SELECT 1 FROM "account" WHERE "userId" = $1 AND "password" IS NOT NULL';
  if ((await query(tx, sql, [userId])).length === 0) throw new ConsoleError('no_password');
  return person;
}

async function insert(
  tx: EntityManager,
  { userId, hash, tenantId, mailed }: { userId: string; hash: string; tenantId: string | null; mailed: boolean },
): Promise<string> {
  const expiresAt = new Date(Date.now() + LINK_MS);
  await query(tx, 'DELETE FROM recovery WHERE expires_at <= now()');
  await query(
    tx,
    'INSERT INTO recovery (token_hash, user_id, tenant_id, mailed, expires_at) VALUES ($1, $2, $3, $4, $5)',
    [hash, userId, tenantId, mailed, expiresAt],
  );
  return expiresAt.toISOString();
}
