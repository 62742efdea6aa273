import type { KeyRow } from '@tollgate/contracts';
import { revokedAtEdge, type Credential } from '../credentials/credential.entity';

export function keyRow(key: Credential): KeyRow {
  const { id, name, last4, createdAt, lastUsedAt, expiresAt, rotatedAt, formerUntil } = key;
  const { profile, owner, tags, models } = key;
  const status = revokedAtEdge(key) ? 'revoked' : expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
  const times = {
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
    rotatedAt: rotatedAt?.toISOString() ?? null,
    formerUntil: formerUntil?.toISOString() ?? null,
  };
  return { id, name, last4, status, ...times, profile, owner, tags, models };
}
