import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { type Author, hashInvitationSecret, mintInvitationSecret } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import { logger, settlesWithin } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { Mailer, MailError } from '../http/mailer';
import { SignIn } from '../sign-in/sign-in';
import { Changes, type Origin, personAs } from './changes';
import { TENANT_ACTIONS } from './roles';

const LINK_MS = 60 * 60_000;
/** Links that one person has got by mail and that still work. */
const MAX_MAILED = 3;
/** Requests whose mail is not sent yet. */
const MAX_PENDING = 100;
/** How long a stop waits for mails, and a request that found too many. */
const MAIL_S = 5;
/** The maker of the links of the operator API. */
export const OPERATOR_API = 'operator-api';

/** The person of a link that an owner made belongs to the tenant, and to nothing else. */
const OF_TENANT_ONLY = `EXISTS (SELECT 1 FROM membership m WHERE m.user_id = u.id AND m.tenant_id = r.tenant_id)
  AND NOT EXISTS (SELECT 1 FROM membership m WHERE m.user_id = u.id AND m.tenant_id <> r.tenant_id)
  AND NOT EXISTS (SELECT 1 FROM operator o WHERE o.user_id = u.id)
  AND NOT EXISTS (SELECT 1 FROM provider_operator p WHERE p.user_id = u.id)`;
/** True while the maker is still an owner or an operator. */
const MAKER_MAY = `CASE WHEN r.tenant_id IS NULL
  THEN r.made_by IS NULL OR r.made_by = '${OPERATOR_API}'
    OR EXISTS (SELECT 1 FROM operator o WHERE o.user_id = r.made_by)
    OR EXISTS (SELECT 1 FROM provider_operator p WHERE p.user_id = r.made_by)
  ELSE EXISTS (
      SELECT 1 FROM membership m WHERE m.user_id = r.made_by AND m.tenant_id = r.tenant_id AND m.role = ANY($2))
    AND ${OF_TENANT_ONLY} END`;
const FOUND = `SELECT u.id AS "userId", u.email, r.made_by IS NOT NULL AS "isByOther",
    r.made_by IS NOT NULL OR u.reset_by_other AS "removesTotp"
  FROM recovery r JOIN "user" u ON u.id = r.user_id
  WHERE r.token_hash = $1 AND r.expires_at > now() AND ${MAKER_MAY}`;

interface Person {
  userId: string;
  email: string;
  /** Somebody else created the link. */
  isByOther: boolean;
  /** Another maker of a link may have set up the second factor. */
  removesTotp: boolean;
}

interface NewLink {
  userId: string;
  hash: string;
  /** A person, or OPERATOR_API. Null: it goes to the person by mail. */
  madeBy: string | null;
  tenantId: string | null;
}

/** Password recovery: a link sets a new password. Only the hash of its secret is stored. */
@Injectable()
export class Recoveries implements BeforeApplicationShutdown {
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly signIn: SignIn,
    private readonly changes: Changes,
    private readonly mailer: Mailer,
  ) {}

  async beforeApplicationShutdown(): Promise<void> {
    await settlesWithin(MAIL_S * 1_000, Promise.all(this.pending));
  }

  /**
   * Mails a link, if a person with a password has this address. All of it happens after the answer, so neither the
   * answer nor its time tells whether there is such a person. Errors: mail_not_configured, rate_limited.
   */
  request(email: string): void {
    if (!this.mailer.isConfigured) throw new ConsoleError('mail_not_configured');
    if (this.pending.size >= MAX_PENDING)
      throw new ConsoleError('rate_limited', undefined, { 'retry-after': String(MAIL_S) });
    this.afterwards(this.mailLink(email), 'a link for a password was not mailed');
  }

  /**
   * A link that another person makes. Only this answer has it. `tenantId`: its owner makes it, for a person who belongs
   * to this tenant only. Errors: not_found, no_password, forbidden.
   */
  async create(by: Author, userId: string, tenantId: string | null): Promise<{ link: string; expiresAt: string }> {
    const { secret, hash } = mintInvitationSecret();
    const { url, expiresAt } = await this.store(by, { userId, hash, madeBy: by.id, tenantId });
    return { link: `${url}#${secret}`, expiresAt };
  }

  /** The same for a secret that the caller keeps. `url`: the link without it. */
  async store(
    by: Author | undefined,
    { userId, hash, madeBy, tenantId }: NewLink,
  ): Promise<{ url: string; expiresAt: string }> {
    return transaction(this.dataSource, async (tx) => {
      const person = await withPassword(tx, userId);
      const expiresAt = await insert(tx, { userId, hash, madeBy, tenantId });
      if ((await find(tx, hash)) === null)
        throw new ConsoleError('forbidden', 'Only an operator can make a link for this person.');
      const after = { name: person.email };
      const change = { action: 'recovery.create', target: userId, after } as const;
      await this.changes.record(by, { ...change, ...(tenantId !== null && { tenantId }) });
      return { url: this.url, expiresAt };
    });
  }

  /** Whose password a link sets. Error: recovery_invalid. */
  async look(secret: string): Promise<Person> {
    const person = await find(this.dataSource, hashInvitationSecret(secret));
    if (!person) throw new ConsoleError('recovery_invalid');
    return person;
  }

  /**
   * Sets the password, and ends all links, sessions and passkeys of the person. If somebody else created the link, that
   * person may have had the account. So the second factor ends, too, and the address is unproven. Error:
   * recovery_invalid.
   */
  async use(secret: string, password: string, from: Origin): Promise<Person> {
    // Before the work of hashing, which is for holders of a link only.
    const { userId } = await this.look(secret);
    const passwordHash = await (await this.signIn.auth.$context).password.hash(password);
    const reset = await transaction(this.dataSource, async (tx) => {
      await lockPerson(tx, userId);
      const person = await find(tx, hashInvitationSecret(secret));
      if (!person) throw new ConsoleError('recovery_invalid');
      await query(tx, 'DELETE FROM recovery WHERE user_id = $1', [userId]);
      await query(
        tx,
        `UPDATE "account" SET "password" = $2, "updatedAt" = now()
         WHERE "userId" = $1 AND "providerId" = 'credential' AND "password" IS NOT NULL`,
        [userId, passwordHash],
      );
      await endSignIns(tx, userId);
      const passkeys = await endPasskeys(tx, userId);
      const totp = person.removesTotp && (await endTotp(tx, userId));
      const change = { action: 'password.reset', target: userId, before: { passkeys, totp } } as const;
      await this.changes.record(personAs(userId, person.email, from), change);
      // The time is taken last: a sign-in call that begins between it and the commit may check the old password, and is
      // not found by `reset_at`.
      await query(
        tx,
        `UPDATE "user" SET "emailVerified" = NOT $2, reset_by_other = $2, reset_at = clock_timestamp(),
           "updatedAt" = now()
         WHERE id = $1`,
        [userId, person.isByOther],
      );
      return person;
    });
    if (this.mailer.isConfigured) {
      const removed = reset.removesTotp ? 'passkeys and the second factor' : 'passkeys';
      const notice = { removed, again: `${this.signIn.origin}/console/forgot-password` };
      const sent = this.mailer.sendPasswordSet(reset.email, notice);
      this.afterwards(sent, 'mailing a person that a link set their password failed');
    }
    return reset;
  }

  /** Work that no answer waits for. */
  private afterwards(mail: Promise<void>, failure: string): void {
    const work = mail
      .catch((error: unknown) => logger('console').warn({ reason: String(error) }, failure))
      .finally(() => this.pending.delete(work));
    this.pending.add(work);
  }

  private get url(): string {
    return `${this.signIn.origin}/console/reset-password`;
  }

  private async mailLink(email: string): Promise<void> {
    const { secret, hash } = mintInvitationSecret();
    const isMade = await transaction(this.dataSource, async (tx) => {
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
        'SELECT 1 FROM recovery WHERE user_id = $1 AND made_by IS NULL AND expires_at > now() LIMIT $2',
        [userId, MAX_MAILED],
      );
      if (mailed.length >= MAX_MAILED) return false;
      await insert(tx, { userId, hash, madeBy: null, tenantId: null });
      return true;
    });
    if (!isMade) return;
    try {
      await this.mailer.sendRecovery(email, `${this.url}#${secret}`);
    } catch (error) {
      // If nobody has this link, it must not count.
      if (!(error instanceof MailError && error.mayHaveArrived))
        await query(this.dataSource, 'DELETE FROM recovery WHERE token_hash = $1', [hash]);
      throw error;
    }
  }
}

/** The person of a link that works. */
async function find(source: DataSource | EntityManager, hash: string): Promise<Person | null> {
  return (await query<Person>(source, FOUND, [hash, TENANT_ACTIONS['members.recover']]))[0] ?? null;
}

export async function endPasskeys(tx: EntityManager, userId: string): Promise<number> {
  return (await query(tx, 'DELETE FROM "passkey" WHERE "userId" = $1 RETURNING id', [userId])).length;
}

/** Removes the second factor. Returns whether there was one. */
async function endTotp(tx: EntityManager, userId: string): Promise<boolean> {
  await query(tx, 'UPDATE "user" SET "twoFactorEnabled" = false WHERE id = $1', [userId]);
  return (await query(tx, 'DELETE FROM "twoFactor" WHERE "userId" = $1 RETURNING id', [userId])).length > 0;
}

/** No session is left, and no sign-in that still waits for its second factor. */
export async function endSignIns(tx: EntityManager, userId: string): Promise<void> {
  await query(tx, 'DELETE FROM "session" WHERE "userId" = $1', [userId]);
  await endWaitingSignIns(tx, userId);
}

/** No sign-in is left that still waits for its second factor. */
export async function endWaitingSignIns(tx: EntityManager, userId: string): Promise<void> {
  await query(tx, 'DELETE FROM "verification" WHERE strpos("value", $1) > 0', [userId]);
}

/** The changes of one person come one after the other. */
export async function lockPerson(tx: EntityManager, userId: string): Promise<{ email: string }> {
  const [person] = await query<{ email: string }>(tx, 'SELECT email FROM "user" WHERE id = $1 FOR UPDATE', [userId]);
  if (!person) throw new ConsoleError('not_found');
  return person;
}

/** Nobody creates a password for a person who has none: that person signs in by a provider. */
async function withPassword(tx: EntityManager, userId: string): Promise<{ email: string }> {
  const person = await lockPerson(tx, userId);
  const sql = 'SELECT 1 FROM "account" WHERE "userId" = $1 AND "password" IS NOT NULL';
  if ((await query(tx, sql, [userId])).length === 0) throw new ConsoleError('no_password');
  return person;
}

async function insert(tx: EntityManager, { userId, hash, madeBy, tenantId }: NewLink): Promise<string> {
  const expiresAt = new Date(Date.now() + LINK_MS);
  await query(tx, 'DELETE FROM recovery WHERE expires_at <= now()');
  await query(
    tx,
    'INSERT INTO recovery (token_hash, user_id, made_by, tenant_id, expires_at) VALUES ($1, $2, $3, $4, $5)',
    [hash, userId, madeBy, tenantId, expiresAt],
  );
  return expiresAt.toISOString();
}
