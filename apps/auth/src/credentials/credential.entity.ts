import type { CredentialKind } from '@tollgate/contracts';
import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** An inference key or a management token. Its value is never stored here: the gateway mints it and sends the hash. */
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

  /** SHA-256 of its first value, hex. The hashes of later values are in `credential_rotation`. */
  @Column('text')
  hash!: string;

  /** The last four characters of the newest secret. */
  @Column('text')
  last4!: string;

  /** Key profile of the tenant's plan. Empty for a token. */
  @Column('text')
  profile!: string;

  /** Scopes of a token. Empty for a key. */
  @Column('text', { array: true })
  scopes!: string[];

  /** Who uses the key. Null for a token, and if it was not given. */
  @Column({ type: 'text', nullable: true })
  owner!: string | null;

  /** Groups of a key. Empty for a token. */
  @Column('text', { array: true })
  tags!: string[];

  /** The only models of its profile that a key may use. Null: all of them, and for a token. */
  @Column({ type: 'text', array: true, nullable: true })
  models!: string[] | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt!: Date;

  /** Null if it never expires. */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;

  /** When the newest secret was created, if it is not the first one. */
  @Column({ name: 'rotated_at', type: 'timestamptz', nullable: true })
  rotatedAt!: Date | null;

  /** Until when a former secret may be accepted. Null: there is none. */
  @Column({ name: 'former_until', type: 'timestamptz', nullable: true })
  formerUntil!: Date | null;

  /** Written by `auth.keys.used` and `auth.tokens.used`. */
  @Column({ name: 'last_used_at', type: 'timestamptz', nullable: true })
  lastUsedAt!: Date | null;

  /** Incremented by each change that the edge must know. */
  @Column('int')
  version!: number;

  /**
   * The version that the credential store certainly has. If it is less than `version`, the row is due for projection.
   */
  @Column({ name: 'projected_version', type: 'int' })
  projectedVersion!: number;
}

/**
 * When the credential was revoked, as far as the edge knows. Null while a revocation is committed but not projected,
 * because the edge may still accept the credential.
 */
export function revokedAtEdge({
  revokedAt,
  version,
  projectedVersion,
}: Pick<Credential, 'revokedAt' | 'version' | 'projectedVersion'>): Date | null {
  return projectedVersion >= version ? revokedAt : null;
}
