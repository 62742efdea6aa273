import { Injectable } from '@nestjs/common';
import { UnavailableError, type CredentialKind } from '@tollgate/contracts';
import { CredentialStore, type CredentialRecord } from '@tollgate/credentials';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { AuthDataSource } from '../database';

export const MAX_CREDENTIALS_PER_BATCH = 500;
/** A process that freezes in the middle of a batch blocks the other processes for at most this time. */
const MAX_IDLE_IN_BATCH_MS = 10_000;

interface Row {
  hash: string;
  kind: CredentialKind;
  id: string;
  tenant_id: string;
  plan: string;
  profile: string;
  scopes: string[];
  models: string[] | null;
  expires_at: Date | null;
  revoked_at: Date | null;
  version: number;
  /** When the row was read: epoch milliseconds by the database's clock. */
  read_at_ms: string;
}

/** A former secret that ended before is no longer written. The store certainly knows of its end. */
const ENDED_BEFORE = `interval '15 days'`;
/**
 * The records of the credentials that the statement `due` selects: one for each secret. A former secret ends at the
 * earliest time that a later one names for those before it. One that ended at once is written as revoked: no gateway
 * may accept it until its own clock reaches that time. The next records are of credentials with higher ids.
 */
const recordsOf = (due: string) => `
  SELECT secret.hash, kind, due.id, tenant_id, plan, profile, scopes, models, version,
         least(expires_at, secret.until) AS expires_at, least(revoked_at, secret.ended) AS revoked_at,
         floor(extract(epoch FROM statement_timestamp()) * 1000) AS read_at_ms
    FROM (${due}) AS due JOIN tenant ON tenant.id = tenant_id, LATERAL (
      SELECT hash, min(former_until) OVER later AS until,
             min(former_until) FILTER (WHERE former_until <= created_at) OVER later AS ended
        FROM (SELECT due.hash, 0 AS number, NULL::timestamptz AS former_until, NULL::timestamptz AS created_at
              UNION ALL
              SELECT hash, number, former_until, created_at FROM credential_rotation WHERE credential_id = due.id
             ) AS secrets
      WINDOW later AS (ORDER BY number DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ) AS secret
   WHERE secret.until IS NULL OR secret.until > now() - ${ENDED_BEFORE}
   ORDER BY due.id`;
/** Revoked, or rotated: that may have ended the former secrets at once. */
const JUST_ENDED = recordsOf(
  `SELECT * FROM credential WHERE greatest(revoked_at, rotated_at) > now() - interval '1 minute'
    ORDER BY greatest(revoked_at, rotated_at) DESC LIMIT $1`,
);
/**
 * The store keeps revoked and expired records for 30 days, by its own clock. It certainly knows the records that match.
 */
const KEPT = `coalesce(least(revoked_at, expires_at) > now() - interval '15 days', true)`;
const ONE = recordsOf('SELECT * FROM credential WHERE id = $1');
const UNPROJECTED = 'projected_version < version';
const MARK = `
  UPDATE credential SET projected_version = done.version FROM unnest($1::text[], $2::int[]) AS done (id, version)
   WHERE credential.id = done.id AND projected_version < done.version`;

type Queries = Pick<EntityManager, 'query'>;

/**
 * Projects credentials from auth's tables to the credential store, where the edge reads them.
 *
 *   1. A change commits with a higher `version`. From that moment the row is unprojected.
 *   2. Its handler calls `project` before it answers. A revocation is answered as done only when it is projected.
 *   3. `projectDue`, in any process, finds what step 2 left behind: the process died, or the store did not answer.
 *
 * The store keeps the newest version, so a record may be written twice, late, or by several processes at once.
 */
@Injectable()
export class Projector {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly store: CredentialStore,
  ) {}

  /**
   * The store has the current record when this returns. UnavailableError when the store does not accept it: the change
   * stays committed, and the loop tries again.
   */
  async project(id: string): Promise<void> {
    try {
      const { dataSource } = this;
      await this.write(dataSource, await query<Row>(dataSource, ONE, [id]));
    } catch (error) {
      throw new UnavailableError(`${id} is committed, but not yet projected: ${(error as Error).message}`);
    }
  }

  /** The same for all credentials of a tenant that are due. The time grows with their number: about 1 s for 10,000. */
  async projectTenant(tenantId: string): Promise<void> {
    try {
      const { dataSource } = this;
      for (let after = ''; ;) {
        const rows = await query<Row>(
          dataSource,
          recordsOf(
            `SELECT * FROM credential WHERE tenant_id = $1 AND id > $2 AND ${UNPROJECTED} ORDER BY id LIMIT $3`,
          ),
          [tenantId, after, MAX_CREDENTIALS_PER_BATCH],
        );
        if ((await this.write(dataSource, rows)) < MAX_CREDENTIALS_PER_BATCH) return;
        after = rows.at(-1)!.id;
      }
    } catch (error) {
      throw new UnavailableError(
        `credentials of ${tenantId} are committed, but not yet projected: ${(error as Error).message}`,
      );
    }
  }

  /**
   * Projects one batch of unprojected rows. Returns their number. An advisory lock lets one process in at a time. With
   * row locks, a revocation would wait as long as a slow store keeps the batch.
   */
  async projectDue(): Promise<number> {
    const { dataSource } = this;
    const [due] = await query<{ any: boolean }>(
      dataSource,
      `SELECT EXISTS (SELECT FROM credential WHERE ${UNPROJECTED}) AS any`,
    );
    if (!due!.any) return 0;
    return transaction(dataSource, async (tx) => {
      const [lock] = await query<{ mine: boolean }>(
        tx,
        `SELECT pg_try_advisory_xact_lock(hashtextextended('tollgate-auth-projection', 0)) AS mine,
                set_config('idle_in_transaction_session_timeout', $1, true)`,
        [`${MAX_IDLE_IN_BATCH_MS}ms`],
      );
      if (!lock!.mine) return 0;
      const due = `SELECT * FROM credential WHERE ${UNPROJECTED} ORDER BY id LIMIT $1`;
      const rows = await query<Row>(tx, recordsOf(due), [MAX_CREDENTIALS_PER_BATCH]);
      return this.write(tx, rows);
    });
  }

  /**
   * Writes every credential again, for a store that lost them. Returns their number. Recent revocations and rotations
   * come first, because no edge may know of them yet.
   */
  async projectAll(): Promise<number> {
    const { dataSource } = this;
    let written = await this.write(dataSource, await query<Row>(dataSource, JUST_ENDED, [MAX_CREDENTIALS_PER_BATCH]));
    for (let after = ''; ;) {
      const rows = await query<Row>(
        dataSource,
        recordsOf('SELECT * FROM credential WHERE id > $1 ORDER BY id LIMIT $2'),
        [after, MAX_CREDENTIALS_PER_BATCH],
      );
      const credentials = await this.write(dataSource, rows);
      written += credentials;
      if (credentials < MAX_CREDENTIALS_PER_BATCH) return written;
      after = rows.at(-1)!.id;
    }
  }

  /**
   * Runs `projectAll` if the store does not know the newest credential that was written to it and that it must still
   * keep. Then it was emptied, or is an older copy.
   */
  async refillIfLost(): Promise<number> {
    const [newest] = await query<{ hash: string }>(
      this.dataSource,
      `SELECT coalesce((SELECT r.hash FROM credential_rotation r WHERE r.credential_id = credential.id
                         ORDER BY number DESC LIMIT 1), hash) AS hash
         FROM credential WHERE projected_version > 0 AND ${KEPT} ORDER BY created_at DESC, id DESC LIMIT 1`,
    );
    if (!newest || (await this.store.lookup(newest.hash))) return 0;
    return this.projectAll();
  }

  /** Whether the store may have more to forget. */
  forget(): Promise<boolean> {
    return this.store.forget();
  }

  /** For a store that may lose its records while we run. It then asks for all of them. */
  keepFilled(): void {
    this.store.refillWith(() => this.projectAll());
  }

  /** Writes all records of some credentials. Returns the number of credentials. */
  private async write(queries: Queries, rows: Row[]): Promise<number> {
    if (rows.length === 0) return 0;
    await this.store.put(rows.map(toRecord), Number(rows[0]!.read_at_ms));
    const versions = new Map(rows.map(({ id, version }) => [id, version]));
    await query(queries, MARK, [[...versions.keys()], [...versions.values()]]);
    return versions.size;
  }
}

function toRecord({
  hash,
  kind,
  id,
  tenant_id,
  plan,
  profile,
  scopes,
  models,
  expires_at,
  revoked_at,
  version,
}: Row): CredentialRecord {
  return {
    hash,
    kind,
    id,
    tenantId: tenant_id,
    plan,
    profile,
    scopes,
    models,
    expiresAtMs: expires_at?.getTime() ?? null,
    revokedAtMs: revoked_at?.getTime() ?? null,
    version,
  };
}
