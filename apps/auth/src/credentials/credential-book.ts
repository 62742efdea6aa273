import { Injectable } from '@nestjs/common';
import {
  isId,
  newId,
  RequestError,
  type Author,
  type Authored,
  type CredentialKind,
  type Page,
  type PageQuery,
} from '@tollgate/contracts';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import { AuthDataSource } from '../database';
import { newestFirst } from '../newest-first';
import { Projector } from '../project/projector';
import { lockTenant } from '../tenants/lock-tenant';
import { Credential } from './credential.entity';

export const ID_PREFIX = { key: 'key', token: 'tok' } as const;

/** The fields that the caller gives. The rest is set here. */
export interface NewCredential {
  tenantId: string;
  name: string;
  hash: string;
  last4: string;
  /** Chooses the profile in the tenant's plan. Empty for a token. */
  profile: (plan: string) => string;
  scopes: string[];
  owner: string | null;
  tags: string[];
  models: string[] | null;
  /** ISO 8601. Without it the credential never expires. */
  expiresAt: string | undefined;
}

/** The fields of a key that may change. */
export type KeyFields = Pick<Credential, 'name' | 'profile' | 'expiresAt' | 'owner' | 'tags' | 'models'>;
/** Those that the edge must know. */
const PROJECTED: ReadonlySet<keyof KeyFields> = new Set(['profile', 'expiresAt', 'models'] as const);

/** The common part of keys and tokens. Each change is committed, then projected to the edge, then answered. */
@Injectable()
export class CredentialBook {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly projector: Projector,
  ) {}

  /**
   * The credential is in force everywhere when this returns. If the credential store does not answer, it comes into
   * force when the loop has projected it. The caller gets an answer either way: the value is shown only in this answer,
   * and a repeat would issue another credential. A credential that does not work yet is no risk. RequestError not_found
   * (tenant), tenant_closed, and the errors of `profile`.
   */
  async issue(
    kind: CredentialKind,
    { expiresAt, profile, ...fields }: NewCredential,
    by: Author | undefined,
  ): Promise<Credential> {
    const credential = this.dataSource.manager.create(Credential, {
      ...fields,
      id: newId(ID_PREFIX[kind]),
      kind,
      expiresAt: expiresAt === undefined ? null : new Date(expiresAt),
      revokedAt: null,
      lastUsedAt: null,
      rotatedAt: null,
      formerUntil: null,
      version: 1,
      projectedVersion: 0,
    });
    await transaction(this.dataSource, async (tx) => {
      const { plan } = await lockTenant(tx, fields.tenantId, 'to_add');
      credential.profile = profile(plan);
      await tx.insert(Credential, credential);
      const { id, tenantId } = credential;
      await recordChange(tx, by, {
        action: `${kind}.create`,
        tenantId,
        target: id,
        after: shownCredential(credential),
      });
    });
    try {
      await this.projector.project(credential.id);
    } catch (error) {
      logger('auth').warn(
        { reason: (error as Error).message },
        'a new credential was returned, but the credential store does not have it yet',
      );
    }
    return credential;
  }

  /** RequestError not_found, also for a key of another tenant. */
  async getKey(tenantId: string, id: string): Promise<Credential> {
    const found =
      isId('key', id) && (await this.dataSource.manager.findOneBy(Credential, { id, kind: 'key', tenantId }));
    if (!found) throw new RequestError('not_found', 'No such key.');
    return found;
  }

  page<Row>(
    kind: CredentialKind,
    tenantId: string,
    wanted: PageQuery,
    toRow: (credential: Credential) => Row,
  ): Promise<Page<Row>> {
    return newestFirst(this.dataSource.getRepository(Credential), { kind, tenantId }, wanted, toRow);
  }

  /**
   * Changes fields of a key. The credential store has them when this returns, so they are in force everywhere within a
   * second. A repeat changes nothing and projects the row again. `checkProfile` throws if the plan lacks the wanted
   * profile. RequestError not_found, also for a key of another tenant; tenant_closed if the tenant was erased.
   * UnavailableError when the store does not accept it: the change is committed, and the loop will project it.
   */
  async update(
    { tenantId, id, by }: Authored<{ tenantId: string; id: string }>,
    wanted: Partial<KeyFields>,
    checkProfile: (plan: string) => void,
  ): Promise<Credential> {
    await transaction(this.dataSource, async (tx) => {
      // The tenant before its credential, so that its plan stays until the end of the transaction.
      const { plan, erasedAt } = await lockTenant(tx, tenantId, 'to_add', { closed: true });
      // It would have names again, and nothing would erase them.
      if (erasedAt !== null) throw new RequestError('tenant_closed');
      const where = { id: isId('key', id) ? id : '', kind: 'key' as const, tenantId };
      const found = await tx.findOne(Credential, { where, lock: { mode: 'pessimistic_write' } });
      if (!found) throw new RequestError('not_found', 'No such key.');
      if (wanted.profile !== undefined) checkProfile(plan);
      const fields = (Object.keys(wanted) as (keyof KeyFields)[]).filter(
        (field) => JSON.stringify(found[field]) !== JSON.stringify(wanted[field]),
      );
      if (fields.length === 0) return;
      const values = (of: Partial<KeyFields>) => Object.fromEntries(fields.map((field) => [field, of[field]]));
      const version = found.version + (fields.some((field) => PROJECTED.has(field)) ? 1 : 0);
      await tx.update(Credential, { id }, { ...values(wanted), version });
      const change = { before: values(found), after: values(wanted) };
      await recordChange(tx, by, { action: 'key.update', tenantId, target: id, ...change });
    });
    await this.projector.project(id);
    return this.getKey(tenantId, id);
  }

  /**
   * The credential store has the revocation when this returns, so it is in force everywhere within a second. A repeat
   * keeps the first `revokedAt` and projects the row again, because the table does not say what the edge knows.
   * RequestError not_found, also for a credential of another tenant. UnavailableError when the store does not accept
   * it: the revocation is committed, the loop will project it, and a repeat succeeds once it is in force.
   */
  async revoke(
    kind: CredentialKind,
    { tenantId, id, by }: Authored<{ tenantId: string; id: string }>,
  ): Promise<{ revokedAt: string }> {
    const revokedAt = await transaction(this.dataSource, async (tx) => {
      const [row] =
        isId('ten', tenantId) && isId(ID_PREFIX[kind], id)
          ? await query<{ revoked_at: Date; was_revoked: boolean }>(
              tx,
              `WITH before AS (
               SELECT id, revoked_at FROM credential WHERE id = $1 AND kind = $2 AND tenant_id = $3 FOR NO KEY UPDATE
             )
             UPDATE credential c
                SET version = version + CASE WHEN c.revoked_at IS NULL THEN 1 ELSE 0 END,
                  revoked_at = COALESCE(c.revoked_at, now())
               FROM before WHERE c.id = before.id
             RETURNING c.revoked_at, before.revoked_at IS NOT NULL AS was_revoked`,
              [id, kind, tenantId],
            )
          : [];
      if (!row) throw new RequestError('not_found', `No such ${kind}.`);
      const after = { revokedAt: row.revoked_at.toISOString() };
      if (!row.was_revoked)
        await recordChange(tx, by, {
          action: `${kind}.revoke`,
          tenantId,
          target: id,
          before: { revokedAt: null },
          after,
        });
      return after.revokedAt;
    });
    await this.projector.project(id);
    return { revokedAt };
  }
}

/** A new credential in the audit log: neither its hash nor its value. */
export function shownCredential({
  kind,
  name,
  last4,
  profile,
  scopes,
  owner,
  tags,
  models,
  expiresAt,
}: Credential): Record<string, unknown> {
  const own = kind === 'key' ? { profile, owner, tags, models } : { scopes };
  return { name, last4, ...own, expiresAt: expiresAt?.toISOString() ?? null };
}
