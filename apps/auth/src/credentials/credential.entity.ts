import type { CredentialKind } from '@tollgate/contracts';
import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** An inference key or a management token. Its value was never here: the gateway mints it and sends the hash. */
@Entity({ name: 'credential' })
export class Credential {
  /** `key_…` or `tok_…` */
  @PrimaryColumn('text')
  id!: string;

  @Column('text')
  kind!: CredentialKind;

  @Column({ name: 'tenant_id', type: 'text' })
  tenantId!: string;

  @Column('text')
  name!: string;

  /** SHA-256 of the value, hex. */
  @Column('text')
  hash!: string;

  @Column('text')
  last4!: string;

  /** Key profile of the tenant's plan; empty for a token. */
  @Column('text')
  profile!: string;

  /** Of a token; empty for a key. */
  @Column('text', { array: true })
  scopes!: string[];

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt!: Date;

  /** Null: never. */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;

  /** Tokens only; written by `auth.tokens.used`. */
  @Column({ name: 'last_used_at', type: 'timestamptz', nullable: true })
  lastUsedAt!: Date | null;

  /** Counts up with each change that the edge must know of. */
  @Column('int')
  version!: number;

  /** The version that the credential store has for certain; less than `version`: it must be projected. */
  @Column({ name: 'projected_version', type: 'int' })
  projectedVersion!: number;
}

/**
 * Since when it is revoked, as far as the edge knows: a revocation that is committed and not projected is told to
 * nobody, as the credential may still be accepted.
 */
export function revokedAtEdge({
  revokedAt,
  version,
  projectedVersion,
}: Pick<Credential, 'revokedAt' | 'version' | 'projectedVersion'>): Date | null {
  return projectedVersion >= version ? revokedAt : null;
}
