import { Injectable } from '@nestjs/common';
import { RequestError, type KeyDetails, type KeyRow, type Page, type RequestOf } from '@tollgate/contracts';
import { ConfigSource } from '@tollgate/runtime';
import { CredentialBook } from '../credentials/credential-book';
import { revokedAtEdge, type Credential } from '../credentials/credential.entity';
import { recordUses } from '../credentials/last-use';
import { AuthDatabase } from '../database';
import { Tenants } from '../tenants/tenants';

/** `auth.keys.*`: inference keys. */
@Injectable()
export class Keys {
  constructor(
    private readonly tenants: Tenants,
    private readonly book: CredentialBook,
    private readonly config: ConfigSource,
    private readonly database: AuthDatabase,
  ) {}

  /**
   * Without a profile, the key gets the first one of the tenant's plan. RequestError not_found (tenant),
   * invalid_profile.
   */
  async create(request: RequestOf<'auth.keys.create'>): Promise<KeyRow> {
    const { profile, tenantId, name, hash, last4, expiresAt, by } = request;
    const { plan } = await this.tenants.get({ tenantId });
    const profiles = this.config.current.plans.find(({ id }) => id === plan)?.profiles ?? [];
    const chosen = profile === undefined ? profiles[0] : profiles.find(({ id }) => id === profile);
    if (!chosen) throw new RequestError('invalid_profile', "profile must name a key profile of the tenant's plan.");
    const fields = { tenantId, name, hash, last4, profile: chosen.id, scopes: [], expiresAt };
    return toRow(await this.book.issue('key', fields, by));
  }

  list({ tenantId, ...query }: RequestOf<'auth.keys.list'>): Promise<Page<KeyRow>> {
    return this.book.page('key', tenantId, query, toRow);
  }

  /** RequestError not_found, also for a key of another tenant. */
  async get({ tenantId, id }: RequestOf<'auth.keys.get'>): Promise<KeyDetails> {
    const key = await this.book.get('key', tenantId, id);
    return { ...toRow(key), profile: key.profile };
  }

  revoke(request: RequestOf<'auth.keys.revoke'>): Promise<{ revokedAt: string }> {
    return this.book.revoke('key', request);
  }

  /** Advances lastUsedAt, never back. A repeat changes nothing. */
  async used({ uses }: RequestOf<'auth.keys.used'>): Promise<{ recorded: number }> {
    return { recorded: await recordUses(this.database, 'key', uses) };
  }
}

function toRow(key: Credential): KeyRow {
  const { id, name, last4, createdAt, lastUsedAt, expiresAt } = key;
  const status = revokedAtEdge(key) ? 'revoked' : expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
  return {
    id,
    name,
    last4,
    status,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
  };
}
