import { Inject, Injectable } from '@nestjs/common';
import { hashCredential, isWellFormedCredential, RequestError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { FormerSecretUse } from '@tollgate/runtime';
import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { RefusedCredentials } from '../../accept/refused-credentials';
import { ApiError } from '../../http/api-error';

/** The operator secret, and then the former one while callers change to it. */
export const OPERATOR_SECRETS = Symbol('operator secrets');

/** The caller: the operator secret (id and name null), or an operator token. */
export interface Operator {
  id: string | null;
  name: string | null;
  scopes: 'all' | readonly string[];
}

const WITH_SECRET: Operator = { id: null, name: null, scopes: 'all' };

/**
 * Finds who calls, by the operator secret or an operator token. The secret is compared by hash, in constant time. Auth
 * is asked for each use of a token, so nothing here outlives a revocation. The secret works while auth is down. After a
 * few wrong values in a minute, further ones from the same address are refused without a check.
 */
@Injectable()
export class OperatorAuthentication {
  private readonly expected: readonly Buffer[];
  private readonly former: FormerSecretUse;
  private readonly refused = new RefusedCredentials({
    component: 'operator',
    credential: 'operator secret',
    maxOfAddress: 10,
    maxOfAll: 200,
  });

  constructor(
    @Inject(OPERATOR_SECRETS) secrets: readonly string[],
    private readonly services: ServiceClient,
  ) {
    this.expected = secrets.map((secret) => hash('sha256', secret, 'buffer'));
    this.former = new FormerSecretUse('operator', secrets);
  }

  async authenticate(request: FastifyRequest): Promise<Operator> {
    const value = /^Bearer +(.*)$/is.exec(request.headers.authorization ?? '')?.[1]?.trim();
    if (!value) throw new ApiError('missing_credential');
    const address = request.ip;
    const waitMs = this.refused.waitMs(address);
    if (waitMs > 0 && !this.refused.isTrusted(address)) throw tooMany(waitMs);
    const given = hash('sha256', value, 'buffer');
    const place = this.expected.findIndex((expected) => timingSafeEqual(given, expected));
    this.former.note(place, address);
    const operator = place >= 0 ? WITH_SECRET : await this.find(value);
    if (operator) {
      this.refused.trust(address);
      return operator;
    }
    if (waitMs > 0) throw tooMany(waitMs);
    this.refused.add(address);
    throw new ApiError('invalid_secret');
  }

  /** Null if no token has this value. Errors: token_revoked, token_expired, unavailable. */
  private async find(value: string): Promise<Operator | null> {
    // The checksum refuses guesses and typing errors before auth is asked.
    if (!isWellFormedCredential('operator', value)) return null;
    try {
      return await this.services.request('auth.operators.use', { hash: hashCredential(value) });
    } catch (error) {
      if (error instanceof RequestError && error.code === 'invalid_secret') return null;
      throw error;
    }
  }
}

const tooMany = (waitMs: number): ApiError =>
  new ApiError('too_many_attempts', undefined, { 'retry-after': String(Math.ceil(waitMs / 1000)) });
