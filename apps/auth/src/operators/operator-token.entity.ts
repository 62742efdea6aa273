import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** An operator token. Its value is never stored here: the gateway mints it and sends the hash. */
@Entity({ name: 'operator_token' })
export class OperatorToken {
  /** `opr_…` */
  @PrimaryColumn('text')
  id!: string;

  @Column('text')
  name!: string;

  /** SHA-256 of the value, hex. */
  @Column('text')
  hash!: string;

  @Column('text')
  last4!: string;

  @Column('text', { array: true })
  scopes!: string[];

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt!: Date;

  /** Null if it never expires. */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;

  /** Advances with a use, once in LAST_USED_STEP_MS. */
  @Column({ name: 'last_used_at', type: 'timestamptz', nullable: true })
  lastUsedAt!: Date | null;
}
