import { Injectable } from '@nestjs/common';
import { isId, MAX_ROTATION_GRACE_SECONDS, RequestError, type KeyRow, type RequestOf } from '@tollgate/contracts';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { CredentialBook } from '../credentials/credential-book';
import { Credential } from '../credentials/credential.entity';
import { AuthDataSource } from '../database';
import { Projector } from '../project/projector';
import { lockTenant } from '../tenants/lock-tenant';
import { keyRow } from './key-row';

/**
 * The next secret of a key. The key keeps its id, and so its budget, its usage and its limits. Both secrets are in
 * force until the grace time ends, by the expiry of the former one at the edge. Without a grace time, the former one is
 * revoked at the edge.
 */
@Injectable()
export class KeyRotation {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly book: CredentialBook,
    private readonly projector: Projector,
  ) {}

  /**
   * No former secret outlives the grace time, not even a secret from an earlier rotation. 0 ends them with the answer.
   * The edge has both when this returns. RequestError not_found, tenant_closed, key_revoked, invalid_grace.
   * UnavailableError when the store does not accept it: it is committed, the loop will project it, and the new secret
   * is lost, so rotate again.
   */
  async rotate(request: RequestOf<'auth.keys.rotate'>): Promise<KeyRow> {
    const { tenantId, id, hash, last4, graceSeconds, by } = request;
    if (!Number.isInteger(graceSeconds) || graceSeconds < 0 || graceSeconds > MAX_ROTATION_GRACE_SECONDS)
      throw new RequestError('invalid_grace');
    await transaction(this.dataSource, async (tx) => {
      await lockTenant(tx, tenantId, 'to_add');
      const where = { id: isId('key', id) ? id : '', kind: 'key' as const, tenantId };
      const key = await tx.findOne(Credential, { where, lock: { mode: 'pessimistic_write' } });
      if (!key) throw new RequestError('not_found', 'No such key.');
      if (key.revokedAt) throw new RequestError('key_revoked');
      const rotatedAt = new Date();
      const formerUntil = new Date(rotatedAt.getTime() + graceSeconds * 1_000);
      await query(
        tx,
        `INSERT INTO credential_rotation (credential_id, number, hash, former_until, created_at)
         SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4 FROM credential_rotation WHERE credential_id = $1`,
        [id, hash, formerUntil, rotatedAt],
      );
      await tx.update(Credential, { id }, { last4, rotatedAt, formerUntil, version: key.version + 1 });
      const after = { last4, formerUntil: formerUntil.toISOString() };
      await recordChange(tx, by, {
        ...{ action: 'key.rotate', tenantId, target: id },
        before: { last4: key.last4, formerUntil: key.formerUntil?.toISOString() ?? null },
        after,
      });
    });
    await this.projector.project(id);
    return keyRow(await this.book.getKey(tenantId, id));
  }
}
