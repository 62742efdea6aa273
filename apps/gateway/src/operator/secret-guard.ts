import { type CanActivate, createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { hashCredential, isWellFormedCredential, RequestError, type Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { FormerSecretUse } from '@tollgate/runtime';
import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { receiveBody } from '../accept/receive-body';
import { RefusedCredentials } from '../accept/refused-credentials';
import { originOf } from '../http/account/origin';
import { ApiError } from '../http/api-error';
import { refuseUnknownParameters } from '../http/validate';
import { endpointOf } from './routes';

/** The operator secret, and then the former one while callers change to it. */
export const OPERATOR_SECRETS = Symbol('operator secrets');

/** The caller that the guard admitted: the operator secret (id and name null), or an operator token. */
export interface Operator {
  id: string | null;
  name: string | null;
  scopes: 'all' | readonly string[];
}

type OperatorRequest = FastifyRequest & { operator?: Operator };

/** The Operator, as a parameter of a guarded endpoint. */
export const FromOperator = createParamDecorator((_: unknown, context: ExecutionContext): Operator =>
  operatorOf(context),
);

function operatorOf(context: ExecutionContext): Operator {
  const { operator } = context.switchToHttp().getRequest<OperatorRequest>();
  if (!operator) throw new Error('endpoint without SecretGuard');
  return operator;
}

/** The Author of the changes of a guarded endpoint, as a parameter. */
export const ByOperator = createParamDecorator((_: unknown, context: ExecutionContext): Author => {
  const { id, name } = operatorOf(context);
  return { kind: id === null ? 'secret' : 'operator', id, name, ...originOf(context) };
});

const WITH_SECRET: Operator = { id: null, name: null, scopes: 'all' };

/**
 * Admits callers with the operator secret, or with an operator token that has the scope of the endpoint. The secret is
 * compared by hash, in constant time. Auth is asked for each use of a token, so nothing here outlives a revocation; the
 * secret works while auth is away. Wrong values of an address are refused without a check after a few in a minute.
 */
@Injectable()
export class SecretGuard implements CanActivate {
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

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    http.getResponse<FastifyReply>().header('cache-control', 'no-store');
    const request = http.getRequest<OperatorRequest>();
    const operator = await this.authenticate(request);
    const { scope, query } = endpointOf(request);
    if (operator.scopes !== 'all' && !operator.scopes.includes(scope))
      throw new ApiError('insufficient_scope', `This endpoint needs an operator token with the scope ${scope}.`);
    request.operator = operator;
    refuseUnknownParameters(request.query, query);
    await receiveBody(request, http.getResponse<FastifyReply>());
    return true;
  }

  private async authenticate(request: FastifyRequest): Promise<Operator> {
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
    // The checksum keeps guesses and typing errors away from auth.
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
