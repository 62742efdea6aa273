import { Injectable } from '@nestjs/common';
import { UnavailableError, type CredentialKind } from '@tollgate/contracts';
import { CredentialStore, type CredentialRecord } from '@tollgate/credentials';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { AuthDatabase } from '../database';

export const MAX_RECORDS_PER_BATCH = 500;
/** A process that is frozen in the middle of a batch keeps the others from projecting no longer than this. */
const MAX_IDLE_IN_BATCH_MS = 10_000;

interface Row {
  hash: string;
  kind: CredentialKind;
  id: string;
  tenant_id: string;
  plan: string;
  profile: string;
  scopes: string[];
  expires_at: Date | null;
  revoked_at: Date | null;
  version: number;
  /** When it was read, epoch milliseconds by the database's clock. */
  read_at_ms: string;
}

const SELECT = `
  SELECT hash, kind, credential.id, tenant_id, plan, profile, scopes, expires_at, revoked_at, version,
         floor(extract(epoch FROM statement_timestamp()) * 1000) AS read_at_ms
    FROM credential JOIN tenant ON tenant.id = tenant_id`;
const JUST_REVOKED = `${SELECT} WHERE revoked_at > now() - interval '1 minute' ORDER BY revoked_at DESC LIMIT $1`;
/** The store keeps for 30 days what is revoked or has expired, by a clock of its own: of these it knows each. */
const KEPT = `coalesce(least(revoked_at, expires_at) > now() - interval '15 days', true)`;
const UNPROJECTED = 'projected_version < version';
const MARK = `
  UPDATE credential SET projected_version = done.version FROM unnest($1::text[], $2::int[]) AS done (id, version)
   WHERE credential.id = done.id AND projected_version < done.version`;

type Queries = Pick<EntityManager, 'query'>;

/**
 * Brings credentials from auth's tables to the credential store, where the edge reads them.
 *
 *   1. A change commits with a higher `version`: the row is unprojected from that moment.
 *   2. Its handler calls `project` before it answers; a revocation that is not projected is not answered as done.
 *   3. What that left (the process died, the store did not answer) `projectDue` finds, in any process.
 *
 * The store keeps the newest version, so a record may be written twice, late or by several at once.
 */
@Injectable()
export class Projector {
  constructor(
    private readonly database: AuthDatabase,
    private readonly store: CredentialStore,
  ) {}

  /**
   * The store has the record as it is now when this returns. UnavailableError when it does not take it: the change
   * stays committed, and the loop tries again.
   */
  async project(id: string): Promise<void> {
    try {
      const { dataSource } = this.database;
      await this.write(dataSource, await query<Row>(dataSource, `${SELECT} WHERE credential.id = $1`, [id]));
    } catch (error) {
      throw new UnavailableError(`${id} is committed and not yet projected: ${(error as Error).message}`);
    }
  }

  /**
   * Projects one batch of what is unprojected; the number of records. One process at a time, by an advisory lock: with
   * row locks a revocation would wait for as long as a slow store keeps the batch.
   */
  async projectDue(): Promise<number> {
    const { dataSource } = this.database;
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
      const rows = await query<Row>(tx, `${SELECT} WHERE ${UNPROJECTED} ORDER BY credential.id LIMIT $1`, [
        MAX_RECORDS_PER_BATCH,
      ]);
      return this.write(tx, rows);
    });
  }

  /**
   * Writes every credential anew, for a store that lost them; the number of records. What was revoked a moment ago
   * comes first: no edge may know of it yet.
   */
  async projectAll(): Promise<number> {
    const { dataSource } = this.database;
    let written = await this.write(dataSource, await query<Row>(dataSource, JUST_REVOKED, [MAX_RECORDS_PER_BATCH]));
    for (let after = ''; ;) {
      const rows = await query<Row>(dataSource, `${SELECT} WHERE credential.id > $1 ORDER BY credential.id LIMIT $2`, [
        after,
        MAX_RECORDS_PER_BATCH,
      ]);
      written += await this.write(dataSource, rows);
      if (rows.length < MAX_RECORDS_PER_BATCH) return written;
      after = rows.at(-1)!.id;
    }
  }

  /**
   * `projectAll` if the store does not know the newest credential that was once written to it, and that it keeps: it
   * was emptied, or is an older copy.
   */
  async refillIfLost(): Promise<number> {
    const [newest] = await query<{ hash: string }>(
      this.database.dataSource,
      `SELECT hash FROM credential WHERE projected_version > 0 AND ${KEPT} ORDER BY created_at DESC, id DESC LIMIT 1`,
    );
    if (!newest || (await this.store.lookup(newest.hash))) return 0;
    return this.projectAll();
  }

  /** Whether there may be more that the store is to forget. */
  forget(): Promise<boolean> {
    return this.store.forget();
  }

  /** For a store that may lose its records while we run: it asks for all of them. */
  keepFilled(): void {
    this.store.refillWith(() => this.projectAll());
  }

  private async write(queries: Queries, rows: Row[]): Promise<number> {
    if (rows.length === 0) return 0;
    await this.store.put(rows.map(toRecord), Number(rows[0]!.read_at_ms));
    await query(queries, MARK, [rows.map(({ id }) => id), rows.map(({ version }) => version)]);
    return rows.length;
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
    expiresAtMs: expires_at?.getTime() ?? null,
    revokedAtMs: revoked_at?.getTime() ?? null,
    version,
  };
}
