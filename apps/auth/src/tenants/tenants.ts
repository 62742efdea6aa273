import { Injectable } from '@nestjs/common';
import {
  isId,
  newId,
  RequestError,
  type Page,
  type PageQuery,
  type RequestOf,
  type TenantRow,
} from '@tollgate/contracts';
import { ConfigSource } from '@tollgate/runtime';
import { AuthDatabase } from '../database';
import { newestFirst } from '../page';
import type { Tenant } from './tenant.entity';

/** `auth.tenants.*` */
@Injectable()
export class Tenants {
  constructor(
    private readonly database: AuthDatabase,
    private readonly config: ConfigSource,
  ) {}

  /** RequestError invalid_plan. Without a plan: the first one of tollgate.yaml. */
  async create({ name, plan }: RequestOf<'auth.tenants.create'>): Promise<TenantRow> {
    const { plans } = this.config.current;
    const chosen = plan === undefined ? plans[0] : plans.find(({ id }) => id === plan);
    if (!chosen) throw new RequestError('invalid_plan', 'plan must name a plan of tollgate.yaml.');
    const tenant = this.database.tenants.create({ id: newId('ten'), name, plan: chosen.id, status: 'active' });
    await this.database.tenants.insert(tenant);
    return toRow(tenant);
  }

  list(query: PageQuery): Promise<Page<TenantRow>> {
    return newestFirst(this.database.tenants, {}, query, toRow);
  }

  /** RequestError not_found. */
  async get({ tenantId }: RequestOf<'auth.tenants.get'>): Promise<TenantRow> {
    const tenant = isId('ten', tenantId) && (await this.database.tenants.findOneBy({ id: tenantId }));
    if (!tenant) throw new RequestError('not_found', 'No such tenant.');
    return toRow(tenant);
  }
}

function toRow({ id, name, plan, status, createdAt }: Tenant): TenantRow {
  return { id, name, plan, status, createdAt: createdAt.toISOString() };
}
