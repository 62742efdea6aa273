import { Injectable } from '@nestjs/common';
import {
  isId,
  MAX_TENANT_NAMES,
  newId,
  RequestError,
  type Page,
  type ReplyOf,
  type RequestOf,
  type TenantRow,
  type TenantUpdate,
} from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { recordChange, sqlState, transaction, UNIQUE_VIOLATION } from '@tollgate/postgres';
import { ConfigSource } from '@tollgate/runtime';
import { In, Raw, type EntityManager, type FindOperator } from 'typeorm';
import { AuthDataSource } from '../database';
import { newestFirst } from '../newest-first';
import { Projector } from '../project/projector';
import { lockTenant } from './lock-tenant';
import { moveProfiles } from './move-profiles';
import { TenantNews } from './tenant-news';
import { tenantRow } from './tenant-row';
import { Tenant } from './tenant.entity';

/** `auth.tenants.*`, except the end of tenants (TenantEnd). */
@Injectable()
export class Tenants {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly config: ConfigSource,
    private readonly news: TenantNews,
    private readonly projector: Projector,
  ) {}

  /** Without a plan, the tenant gets the first one of tollgate.yaml. RequestError invalid_plan, external_id_taken. */
  async create({ name, plan, externalId, by }: RequestOf<'auth.tenants.create'>): Promise<TenantRow> {
    const chosen = this.planOf(plan ?? this.config.current.plans[0]!.id).id;
    const tenant = this.dataSource.manager.create(Tenant, {
      ...{ id: newId('ten'), name, plan: chosen, status: 'active', statusVersion: 0 },
      ...{ externalId: externalId ?? null, closedAt: null, erasedAt: null },
    });
    await this.uniquely(async (tx) => {
      await tx.insert(Tenant, tenant);
      const after = { name, plan: chosen, ...(externalId !== undefined && { externalId }) };
      await recordChange(tx, by, { action: 'tenant.create', tenantId: tenant.id, after });
    });
    return tenantRow(tenant);
  }

  list({ externalId, search, ...query }: RequestOf<'auth.tenants.list'>): Promise<Page<TenantRow>> {
    const where = {
      ...(externalId !== undefined && { externalId }),
      ...(search !== undefined && search !== '' && { name: containing(search) }),
    };
    return newestFirst(this.dataSource.getRepository(Tenant), where, query, tenantRow);
  }

  /** RequestError not_found. */
  async get({ tenantId }: RequestOf<'auth.tenants.get'>): Promise<TenantRow> {
    const tenant = isId('ten', tenantId) && (await this.dataSource.manager.findOneBy(Tenant, { id: tenantId }));
    if (!tenant) throw new RequestError('not_found', 'No such tenant.');
    return tenantRow(tenant);
  }

  /** RequestError invalid_parameter. */
  async names({ ids }: RequestOf<'auth.tenants.names'>): Promise<ReplyOf<'auth.tenants.names'>> {
    if (!Array.isArray(ids) || ids.length > MAX_TENANT_NAMES || !ids.every((id) => isId('ten', id)))
      throw new RequestError('invalid_parameter', `ids must be a list of at most ${MAX_TENANT_NAMES} tenant ids.`);
    const tenants = await this.dataSource.manager.find(Tenant, {
      select: { id: true, name: true },
      where: { id: In(ids) },
    });
    return { data: tenants.map(({ id, name }) => ({ id, name })) };
  }

  /**
   * Changes the given fields. With a new plan, the edge has the new limits of all its keys when this returns, so they
   * are in force everywhere within a second. A repeat changes nothing and projects again. RequestError not_found,
   * tenant_closed, external_id_taken, invalid_plan, invalid_profile, profiles_missing. UnavailableError when the store
   * does not accept it: the change is committed, and the loop will project it.
   */
  async update(request: RequestOf<'auth.tenants.update'>): Promise<TenantRow> {
    const { tenantId, name, externalId, plan, profiles, by } = request;
    const planned = plan === undefined ? undefined : this.planOf(plan);
    const wanted: Partial<Pick<Tenant, 'name' | 'externalId' | 'plan'>> = {
      ...(name !== undefined && { name }),
      ...(externalId !== undefined && { externalId }),
      ...(planned && { plan: planned.id }),
    };
    const row = await this.uniquely(async (tx) => {
      const tenant = await lockTenant(tx, tenantId, 'to_change');
      const fields = (Object.keys(wanted) as (keyof typeof wanted)[]).filter(
        (field) => tenant[field] !== wanted[field],
      );
      if (fields.length === 0) return tenantRow(tenant);
      const values = (of: typeof wanted) => Object.fromEntries(fields.map((field) => [field, of[field]]));
      const change = { before: values(tenant), after: values(wanted) };
      const moved =
        planned && fields.includes('plan') ? await moveProfiles(tx, tenantId, planned, profiles ?? {}) : undefined;
      await tx.update(Tenant, { id: tenantId }, values(wanted));
      const after = { ...change.after, ...(moved && Object.keys(moved).length > 0 && { profiles: moved }) };
      await recordChange(tx, by, { action: 'tenant.update', tenantId, before: change.before, after });
      return tenantRow(Object.assign(tenant, wanted));
    });
    if (planned) await this.projector.projectTenant(tenantId);
    return row;
  }

  /**
   * Commits the status together with its message. It is in force when this returns, because billing has passed it on to
   * the admission store. RequestError not_found, tenant_closed. UnavailableError when it may not be in force yet:
   * repeat the request.
   */
  async setStatus({ tenantId, status, by }: RequestOf<'auth.tenants.setStatus'>): Promise<TenantRow> {
    if (status !== 'active' && status !== 'suspended')
      throw new RequestError('invalid_parameter', 'status must be active or suspended.');
    const { row, update } = await transaction(this.dataSource, async (tx) => {
      const tenant = await lockTenant(tx, tenantId, 'to_change');
      if (tenant.status !== status) {
        const action = status === 'active' ? 'tenant.resume' : 'tenant.suspend';
        await recordChange(tx, by, { action, tenantId, before: { status: tenant.status }, after: { status } });
        tenant.status = status;
        tenant.statusVersion += 1;
        await tx.update(Tenant, { id: tenantId }, { status, statusVersion: tenant.statusVersion });
      }
      // Published even when nothing changed: an operator who repeats the request wants that.
      const update: TenantUpdate = { tenantId, version: tenant.statusVersion, status };
      await enqueue(tx, 'tenant-news', [update]);
      return { row: tenantRow(tenant), update };
    });
    await this.news.tell(update);
    return row;
  }

  private planOf(id: string) {
    const plan = this.config.current.plans.find((one) => one.id === id);
    if (!plan) throw new RequestError('invalid_plan', `plan must name a plan of tollgate.yaml; "${id}" is not one.`);
    return plan;
  }

  private async uniquely<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> {
    try {
      return await transaction(this.dataSource, work);
    } catch (error) {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      throw new RequestError('external_id_taken');
    }
  }
}

/** The name, id or external id of a tenant contains the text. It is no pattern, so every character counts as itself. */
function containing(text: string): FindOperator<string> {
  const searched = (name: string) => `position(lower(:search) IN lower(concat_ws(' ', ${name}, id, external_id))) > 0`;
  return Raw(searched, { search: text }) as FindOperator<string>;
}
