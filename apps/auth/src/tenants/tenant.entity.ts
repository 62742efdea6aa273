import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

@Entity({ name: 'tenant' })
export class Tenant {
  /** `ten_…` */
  @PrimaryColumn('text')
  id!: string;

  @Column('text')
  name!: string;

  /** A plan of tollgate.yaml. */
  @Column('text')
  plan!: string;

  @Column('text')
  status!: 'active' | 'suspended';

  /** Incremented by every change of the status. */
  @Column('int', { name: 'status_version', default: 0 })
  statusVersion!: number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt!: Date;
}
