import { Injectable } from '@nestjs/common';
import { RequestError, SCOPES, type Page, type RequestOf, type TokenRow } from '@tollgate/contracts';
import { CredentialBook } from '../credentials/credential-book';
import { revokedAtEdge, type Credential } from '../credentials/credential.entity';
import { recordUses } from '../credentials/last-use';
import { AuthDataSource } from '../database';

/** `auth.tokens.*`: management tokens. */
@Injectable()
export class Tokens {
  constructor(
    private readonly book: CredentialBook,
    private readonly dataSource: AuthDataSource,
  ) {}

  /** RequestError not_found (tenant), tenant_closed, invalid_scope (none, unknown, or named twice). */
  async create(request: RequestOf<'auth.tokens.create'>): Promise<TokenRow> {
    const { tenantId, name, hash, last4, scopes, expiresAt, by } = request;
    const known = scopes.every((scope) => (SCOPES as readonly string[]).includes(scope));
    if (scopes.length === 0 || !known || new Set(scopes).size < scopes.length) {
      throw new RequestError('invalid_scope', `scopes must be one or more of ${SCOPES.join(', ')}, each named once.`);
    }
    return toRow(
      await this.book.issue(
        'token',
        { tenantId, name, hash, last4, profile: () => '', scopes, expiresAt, owner: null, tags: [], models: null },
        by,
      ),
    );
  }

  list({ tenantId, ...query }: RequestOf<'auth.tokens.list'>): Promise<Page<TokenRow>> {
    return this.book.page('token', tenantId, query, toRow);
  }

  revoke(request: RequestOf<'auth.tokens.revoke'>): Promise<{ revokedAt: string }> {
    return this.book.revoke('token', request);
  }

  /** Advances lastUsedAt, never back. `recorded` counts the tokens among the ids. A repeat changes nothing. */
  async used({ uses }: RequestOf<'auth.tokens.used'>): Promise<{ recorded: number }> {
    return { recorded: await recordUses(this.dataSource, 'token', uses) };
  }
}

function toRow(token: Credential): TokenRow {
  const { id, name, last4, scopes, createdAt, lastUsedAt, expiresAt } = token;
  return {
    id,
    name,
    last4,
    scopes,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAtEdge(token)?.toISOString() ?? null,
  };
}
