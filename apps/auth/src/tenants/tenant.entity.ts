import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

@Entity({ name: 'tenant' })
export class Tenant {
  /** `ten_…` */
  @PrimaryColumn('text')
  id!: string;

  @Column('text')
  name!: string;

  /** The operator's own id, unique. */
  @Column('text', { name: 'external_id', nullable: true })
  externalId!: string | null;

  /** A plan of tollgate.yaml. */
  @Column('text')
  plan!: string;

  @Column('text')
  status!: 'active' | 'suspended' | 'closed';

  /** Incremented by every change of the status. */
  @Column('int', { name: 'status_version', default: 0 })
  statusVersion!: number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt!: Date;

  /** Set together with the status `closed`. Final. */
  @Column('timestamptz', { name: 'closed_at', nullable: true })
  closedAt!: Date | null;

  @Column('timestamptz', { name: 'erased_at', nullable: true })
  erasedAt!: Date | null;
}
