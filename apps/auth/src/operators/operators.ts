import { Injectable } from '@nestjs/common';
import {
  isId,
  newId,
  OPERATOR_SCOPES,
  RequestError,
  type OperatorTokenRow,
  type Page,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, recordChange, sqlState, transaction, UNIQUE_VIOLATION } from '@tollgate/postgres';
import { AuthDataSource } from '../database';
import { newestFirst } from '../newest-first';
import { OperatorToken } from './operator-token.entity';

/** A use within this time of the last one is not written. */
const LAST_USED_STEP_MS = 5_000;

/**
 * `auth.operators.*`: the named tokens of the operator API. The gateway keeps nothing of them and asks for each call,
 * so a token is in force, and a revocation too, from the moment of its answer.
 */
@Injectable()
export class Operators {
  constructor(private readonly dataSource: AuthDataSource) {}

  /** RequestError invalid_scope (none, unknown, or named twice), name_taken. */
  async create(request: RequestOf<'auth.operators.create'>): Promise<OperatorTokenRow> {
    const { name, hash, last4, scopes, expiresAt, by } = request;
    const known = scopes.every((scope) => (OPERATOR_SCOPES as readonly string[]).includes(scope));
    if (scopes.length === 0 || !known || new Set(scopes).size < scopes.length)
      throw new RequestError(
        'invalid_scope',
        `scopes must be one or more of ${OPERATOR_SCOPES.join(', ')}, each named once.`,
      );
    const token = this.dataSource.manager.create(OperatorToken, {
      ...{ id: newId('opr'), name, hash, last4, scopes },
      expiresAt: expiresAt === undefined ? null : new Date(expiresAt),
      revokedAt: null,
      lastUsedAt: null,
    });
    try {
      await transaction(this.dataSource, async (tx) => {
        await tx.insert(OperatorToken, token);
        const after = { name, last4, scopes, expiresAt: expiresAt ?? null };
        await recordChange(tx, by, { action: 'operator.create', target: token.id, after });
      });
    } catch (error) {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      throw new RequestError('name_taken');
    }
    return toRow(token);
  }

  list(page: RequestOf<'auth.operators.list'>): Promise<Page<OperatorTokenRow>> {
    return newestFirst(this.dataSource.getRepository(OperatorToken), {}, page, toRow);
  }

  /** A repeat keeps the first `revokedAt`. RequestError not_found. */
  async revoke({ id, by }: RequestOf<'auth.operators.revoke'>): Promise<{ revokedAt: string }> {
    return transaction(this.dataSource, async (tx) => {
      const where = { id: isId('opr', id) ? id : '' };
      const token = await tx.findOne(OperatorToken, { where, lock: { mode: 'pessimistic_write' } });
      if (!token) throw new RequestError('not_found', 'No such operator token.');
      if (token.revokedAt) return { revokedAt: token.revokedAt.toISOString() };
      const revokedAt = new Date();
      await tx.update(OperatorToken, { id }, { revokedAt });
      const after = { revokedAt: revokedAt.toISOString() };
      await recordChange(tx, by, { action: 'operator.revoke', target: id, before: { revokedAt: null }, after });
      return after;
    });
  }

  /** RequestError invalid_secret, token_revoked, token_expired. A token that is both answers token_revoked. */
  async use({ hash }: RequestOf<'auth.operators.use'>): Promise<ReplyOf<'auth.operators.use'>> {
    const token = await this.dataSource.manager.findOneBy(OperatorToken, { hash });
    if (!token) throw new RequestError('invalid_secret');
    if (token.revokedAt) throw new RequestError('token_revoked');
    if (token.expiresAt && token.expiresAt.getTime() <= Date.now()) throw new RequestError('token_expired');
    await query(
      this.dataSource,
      `UPDATE operator_token SET last_used_at = now()
        WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - $2 * interval '1 millisecond')`,
      [token.id, LAST_USED_STEP_MS],
    );
    const { id, name, scopes } = token;
    return { id, name, scopes };
  }
}

function toRow(token: OperatorToken): OperatorTokenRow {
  const { id, name, last4, scopes, createdAt, lastUsedAt, expiresAt, revokedAt } = token;
  return {
    ...{ id, name, last4, scopes },
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
  };
}
