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
import { enqueue } from '@tollgate/messaging';
import { recordChange, transaction } from '@tollgate/postgres';
import { ConfigSource } from '@tollgate/runtime';
import { AuthDatabase } from '../database';
import { newestFirst } from '../page';
import { TenantOutbox } from './tenant-outbox';
import { Tenant } from './tenant.entity';

/** `auth.tenants.*` */
@Injectable()
export class Tenants {
  constructor(
    private readonly database: AuthDatabase,
    private readonly config: ConfigSource,
    private readonly outbox: TenantOutbox,
  ) {}

  /** Without a plan, the tenant gets the first one of tollgate.yaml. RequestError invalid_plan. */
  async create({ name, plan, by }: RequestOf<'auth.tenants.create'>): Promise<TenantRow> {
    const { plans } = this.config.current;
    const chosen = plan === undefined ? plans[0] : plans.find(({ id }) => id === plan);
    if (!chosen) throw new RequestError('invalid_plan', 'plan must name a plan of tollgate.yaml.');
    const tenant = this.database.tenants.create({
      id: newId('ten'),
      name,
      plan: chosen.id,
      status: 'active',
      statusVersion: 0,
    });
    await transaction(this.database.dataSource, async (tx) => {
      await tx.insert(Tenant, tenant);
      const after = { name, plan: chosen.id };
      await recordChange(tx, by, { action: 'tenant.create', tenantId: tenant.id, after });
    });
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

  /**
   * Commits the status together with its message. It is in force when this returns, because billing has passed it on to
   * the admission store. RequestError not_found. UnavailableError when it may not be in force yet: repeat the request.
   */
  async setStatus({ tenantId, status, by }: RequestOf<'auth.tenants.setStatus'>): Promise<TenantRow> {
    if (status !== 'active' && status !== 'suspended')
      throw new RequestError('invalid_parameter', 'status must be active or suspended.');
    const { row, update } = await transaction(this.database.dataSource, async (tx) => {
      const tenant =
        isId('ten', tenantId) &&
        (await tx.findOne(Tenant, { where: { id: tenantId }, lock: { mode: 'pessimistic_write' } }));
      if (!tenant) throw new RequestError('not_found', 'No such tenant.');
      if (tenant.status !== status) {
        const action = status === 'active' ? 'tenant.resume' : 'tenant.suspend';
        await recordChange(tx, by, { action, tenantId, before: { status: tenant.status }, after: { status } });
        tenant.status = status;
        tenant.statusVersion += 1;
        await tx.update(Tenant, { id: tenantId }, { status, statusVersion: tenant.statusVersion });
      }
      // Published even when nothing changed: an operator who repeats the request wants that.
      const update = { tenantId, version: tenant.statusVersion, status };
      await enqueue(tx, 'tenant-news', [update]);
      return { row: toRow(tenant), update };
    });
    await this.outbox.tell(update);
    return row;
  }
}

function toRow({ id, name, plan, status, createdAt }: Tenant): TenantRow {
  return { id, name, plan, status, createdAt: createdAt.toISOString() };
}
