import { Injectable } from '@nestjs/common';
import {
  MAX_APPLIED_KEYS,
  newId,
  RequestError,
  type ReplyOf,
  type RequestOf,
  type WantedKey,
} from '@tollgate/contracts';
import { recordChange, transaction } from '@tollgate/postgres';
import { ConfigSource, logger } from '@tollgate/runtime';
import { IsNull, type EntityManager } from 'typeorm';
import { shownCredential, type KeyFields } from '../credentials/credential-book';
import { Credential } from '../credentials/credential.entity';
import { AuthDataSource } from '../database';
import { Projector } from '../project/projector';
import { lockTenant } from '../tenants/lock-tenant';
import { keyRow } from './key-row';
import { modelsOf, profileOf } from './profile-of';

type Request = RequestOf<'auth.keys.apply'>;
type Reply = ReplyOf<'auth.keys.apply'>;
type Changes = Partial<Omit<KeyFields, 'name'>>;

interface Plan {
  created: Credential[];
  updated: { key: Credential; changes: Changes }[];
  revoked: Credential[];
  unchanged: number;
  others: number;
}

/** `auth.keys.apply`: makes the keys of a tenant match a list, in one transaction. */
@Injectable()
export class KeyList {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly config: ConfigSource,
    private readonly projector: Projector,
  ) {}

  /**
   * Locks the tenant, so that no key is issued between the comparison and the change. Locks its keys, so that none is
   * revoked. RequestError not_found, tenant_closed, invalid_profile, invalid_models, invalid_parameter,
   * ambiguous_name.
   */
  async apply(request: Request): Promise<Reply> {
    const { tenantId, keys, secrets, by } = request;
    if (keys.length > MAX_APPLIED_KEYS || (secrets && secrets.length !== keys.length))
      throw new RequestError('invalid_parameter', `A list has at most ${MAX_APPLIED_KEYS} keys, each with a secret.`);
    const { plan, changed } = await transaction(this.dataSource, async (tx) => {
      const tenant = await lockTenant(tx, tenantId, 'to_change');
      const present = await tx.find(Credential, {
        where: { tenantId, kind: 'key', revokedAt: IsNull() },
        order: { id: 'ASC' },
        lock: { mode: 'pessimistic_write' },
      });
      const plan = this.compare(request, tenant.plan, present);
      return { plan, changed: secrets ? await this.write(tx, plan, by) : false };
    });
    const inForce = !changed || (await this.project(tenantId));
    return {
      created: plan.created.map((key) => ({ ...keyRow(key), id: secrets ? key.id : null })),
      updated: plan.updated.map(({ key, changes }) => ({
        row: keyRow({ ...key, ...changes }),
        fields: Object.keys(changes),
        before: pick(keyRow(key), Object.keys(changes) as (keyof Changes)[]),
      })),
      revoked: plan.revoked.map(({ id, name }) => ({ id, name })),
      unchanged: plan.unchanged,
      others: plan.others,
      inForce,
    };
  }

  private compare({ tenantId, keys, secrets, revokeOthers }: Request, tenantPlan: string, present: Credential[]): Plan {
    const byName = new Map<string, Credential[]>();
    for (const key of present) byName.set(key.name, [...(byName.get(key.name) ?? []), key]);
    const plan: Plan = { created: [], updated: [], revoked: [], unchanged: 0, others: 0 };
    const seen = new Set<string>();
    for (const [index, wanted] of keys.entries()) {
      const { name } = wanted;
      if (seen.has(name)) throw new RequestError('invalid_parameter', `The name ${name} appears twice in the list.`);
      seen.add(name);
      const [key, another] = byName.get(name) ?? [];
      if (another) {
        const message = `keys.${index}.name: Several keys have the name ${name}. Rename or revoke all but one.`;
        throw new RequestError('ambiguous_name', message);
      }
      if (key) {
        const changes = within(index, () => this.changesOf(key, wanted, tenantPlan));
        if (Object.keys(changes).length > 0) plan.updated.push({ key, changes });
        else plan.unchanged += 1;
      } else plan.created.push(within(index, () => this.made(tenantId, wanted, tenantPlan, secrets?.[index])));
    }
    const others = present.filter(({ name }) => !seen.has(name));
    if (revokeOthers) plan.revoked.push(...others);
    else plan.others = others.length;
    return plan;
  }

  private changesOf(key: Credential, wantedKey: WantedKey, tenantPlan: string): Changes {
    const { profile, expiresAt, owner, tags, models } = wantedKey;
    const wanted: Changes = {
      ...(profile !== undefined && { profile: profileOf(this.config.current, tenantPlan, profile) }),
      ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : new Date(expiresAt) }),
      ...(owner !== undefined && { owner }),
      ...(tags !== undefined && { tags }),
      ...(models !== undefined && { models: modelsOf(this.config.current, models) }),
    };
    const fields = (Object.keys(wanted) as (keyof Changes)[]).filter(
      (field) => JSON.stringify(key[field]) !== JSON.stringify(wanted[field]),
    );
    return Object.fromEntries(fields.map((field) => [field, wanted[field]]));
  }

  private made(
    tenantId: string,
    { name, profile, expiresAt, owner, tags, models }: WantedKey,
    tenantPlan: string,
    secret: { hash: string; last4: string } = { hash: '', last4: '' },
  ): Credential {
    return this.dataSource.manager.create(Credential, {
      ...{ id: newId('key'), kind: 'key', tenantId, name, ...secret, scopes: [] },
      profile: profileOf(this.config.current, tenantPlan, profile),
      expiresAt: expiresAt ? new Date(expiresAt) : null,
      models: modelsOf(this.config.current, models ?? null),
      ...{ owner: owner ?? null, tags: tags ?? [], createdAt: new Date() },
      ...{ revokedAt: null, lastUsedAt: null, rotatedAt: null, formerUntil: null, version: 1, projectedVersion: 0 },
    });
  }

  /** Whether anything changed. Each change has its row in the audit log. */
  private async write(tx: EntityManager, { created, updated, revoked }: Plan, by: Request['by']): Promise<boolean> {
    if (created.length > 0) await tx.insert(Credential, created);
    for (const key of created) {
      const { id: target, tenantId } = key;
      await recordChange(tx, by, { action: 'key.create', tenantId, target, after: shownCredential(key) });
    }
    for (const { key, changes } of updated) {
      const { id, tenantId, version } = key;
      await tx.update(Credential, { id }, { ...changes, version: version + 1 });
      const before = Object.fromEntries(Object.keys(changes).map((field) => [field, key[field as keyof Changes]]));
      await recordChange(tx, by, { action: 'key.update', tenantId, target: id, before, after: { ...changes } });
    }
    for (const { id, tenantId, version } of revoked) {
      const revokedAt = new Date();
      await tx.update(Credential, { id }, { revokedAt, version: version + 1 });
      const change = { before: { revokedAt: null }, after: { revokedAt: revokedAt.toISOString() } };
      await recordChange(tx, by, { action: 'key.revoke', tenantId, target: id, ...change });
    }
    return created.length + updated.length + revoked.length > 0;
  }

  /**
   * False if the edge may not know all changes yet. The answer still has the secrets, because they are shown only once.
   */
  private async project(tenantId: string): Promise<boolean> {
    try {
      await this.projector.projectTenant(tenantId);
      return true;
    } catch (error) {
      logger('auth').warn({ tenantId, reason: (error as Error).message }, 'a list of keys is not in force yet');
      return false;
    }
  }
}

/** The fields that `profileOf` and `modelsOf` refuse. */
const FIELD_OF: Readonly<Record<string, string>> = { invalid_profile: 'profile', invalid_models: 'models' };

/** Names the place in the list in an error. */
function within<T>(index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new RequestError(error.code, `keys.${index}.${FIELD_OF[error.code] ?? 'name'}: ${error.message}`);
  }
}

function pick<T extends object, K extends keyof T>(from: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(fields.map((field) => [field, from[field]])) as Pick<T, K>;
}
