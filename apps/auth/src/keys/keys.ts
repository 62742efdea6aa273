import { Injectable } from '@nestjs/common';
import {
  isId,
  MAX_KEY_NAMES,
  RequestError,
  type KeyNames,
  type KeyRow,
  type Page,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { ConfigSource } from '@tollgate/runtime';
import { CredentialBook } from '../credentials/credential-book';
import { Credential, revokedAtEdge } from '../credentials/credential.entity';
import { recordUses } from '../credentials/last-use';
import { AuthDataSource } from '../database';
import { keyRow } from './key-row';
import { modelsOf, profileOf } from './profile-of';

/** `auth.keys.*`: inference keys. */
@Injectable()
export class Keys {
  constructor(
    private readonly book: CredentialBook,
    private readonly config: ConfigSource,
    private readonly dataSource: AuthDataSource,
  ) {}

  /**
   * Without a profile, the key gets the first one of the tenant's plan. RequestError not_found (tenant), tenant_closed,
   * invalid_profile, invalid_models.
   */
  async create(request: RequestOf<'auth.keys.create'>): Promise<KeyRow> {
    const { tenantId, name, hash, last4, expiresAt, owner = null, tags = [], by } = request;
    const models = modelsOf(this.config.current, request.models ?? null);
    const profile = (plan: string) => profileOf(this.config.current, plan, request.profile);
    const fields = { tenantId, name, hash, last4, profile, scopes: [], expiresAt, owner, tags, models };
    return keyRow(await this.book.issue('key', fields, by));
  }

  /**
   * RequestError not_found, also for a key of another tenant; tenant_closed (the tenant was erased), invalid_profile,
   * invalid_models.
   */
  async update(request: RequestOf<'auth.keys.update'>): Promise<KeyRow> {
    const { tenantId, id, name, profile, expiresAt, owner, tags, models, by } = request;
    const wanted = {
      ...(name !== undefined && { name }),
      ...(profile !== undefined && { profile }),
      ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : new Date(expiresAt) }),
      ...(owner !== undefined && { owner }),
      ...(tags !== undefined && { tags }),
      ...(models !== undefined && { models: modelsOf(this.config.current, models) }),
    };
    const check = (plan: string) => void profileOf(this.config.current, plan, profile);
    return keyRow(await this.book.update({ tenantId, id, ...(by && { by }) }, wanted, check));
  }

  list({ tenantId, ...query }: RequestOf<'auth.keys.list'>): Promise<Page<KeyRow>> {
    return this.book.page('key', tenantId, query, keyRow);
  }

  /** RequestError not_found, also for a key of another tenant. */
  async get({ tenantId, id }: RequestOf<'auth.keys.get'>): Promise<KeyRow> {
    return keyRow(await this.book.getKey(tenantId, id));
  }

  /** RequestError not_found. */
  async find({ id }: RequestOf<'auth.keys.find'>): Promise<ReplyOf<'auth.keys.find'>> {
    const key = isId('key', id) && (await this.dataSource.manager.findOneBy(Credential, { id, kind: 'key' }));
    if (!key) throw new RequestError('not_found', 'No such key.');
    return { ...keyRow(key), tenantId: key.tenantId, revokedAt: revokedAtEdge(key)?.toISOString() ?? null };
  }

  /** RequestError invalid_parameter. */
  async names({ ids }: RequestOf<'auth.keys.names'>): Promise<{ data: KeyNames[] }> {
    if (!Array.isArray(ids) || ids.length > MAX_KEY_NAMES || !ids.every((id) => isId('key', id)))
      throw new RequestError('invalid_parameter', `ids must be a list of at most ${MAX_KEY_NAMES} key ids.`);
    const data = await query<KeyNames>(
      this.dataSource,
      `SELECT c.id, c.name, c.owner, c.tags, t.name AS "tenantName", t.external_id AS "externalId"
         FROM credential c JOIN tenant t ON t.id = c.tenant_id WHERE c.id = ANY($1) AND c.kind = 'key'`,
      [ids],
    );
    return { data };
  }

  revoke(request: RequestOf<'auth.keys.revoke'>): Promise<{ revokedAt: string }> {
    return this.book.revoke('key', request);
  }

  /** Advances lastUsedAt, never back. A repeat changes nothing. */
  async used({ uses }: RequestOf<'auth.keys.used'>): Promise<{ recorded: number }> {
    return { recorded: await recordUses(this.dataSource, 'key', uses) };
  }
}
