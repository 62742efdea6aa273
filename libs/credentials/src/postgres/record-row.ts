import type { CredentialKind } from '@tollgate/contracts';
import type { CredentialRecord } from '../credential-store';

export const RECORD_COLUMNS =
  'hash, kind, id, tenant_id, plan, profile, scopes, models, expires_at_ms, revoked_at_ms, version';

/** A row of the table from node-postgres: bigint columns are strings. */
export interface RecordRow {
  hash: string;
  kind: CredentialKind;
  id: string;
  tenant_id: string;
  plan: string;
  profile: string;
  scopes: string[];
  models: string[] | null;
  expires_at_ms: string | null;
  revoked_at_ms: string | null;
  version: string;
}

export function toRecord(row: RecordRow): CredentialRecord {
  return {
    hash: row.hash,
    kind: row.kind,
    id: row.id,
    tenantId: row.tenant_id,
    plan: row.plan,
    profile: row.profile,
    scopes: row.scopes,
    models: row.models,
    expiresAtMs: row.expires_at_ms === null ? null : Number(row.expires_at_ms),
    revokedAtMs: row.revoked_at_ms === null ? null : Number(row.revoked_at_ms),
    version: Number(row.version),
  };
}

/** The same as JSON for `jsonb_to_recordset`. */
export function toRow(record: CredentialRecord): object {
  const { hash, kind, id, tenantId, plan, profile, scopes, models = null, expiresAtMs, revokedAtMs, version } = record;
  return {
    hash,
    kind,
    id,
    tenant_id: tenantId,
    plan,
    profile,
    scopes,
    models,
    expires_at_ms: expiresAtMs,
    revoked_at_ms: revokedAtMs,
    version,
  };
}
