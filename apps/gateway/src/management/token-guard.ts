import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  CREDENTIAL_PREFIX,
  hashCredential,
  isWellFormedCredential,
  type Author,
  type Scope,
} from '@tollgate/contracts';
import { type CredentialRecord, CredentialStore } from '@tollgate/credentials';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { CredentialGuard, tooManyAttempts } from '../accept/credential-guard';
import { receiveBody } from '../accept/receive-body';
import { originOf } from '../http/account/origin';
import { ApiError } from '../http/api-error';
import { refuseUnknownParameters } from '../http/validate';
import { CallRates } from './call-rates';
import { managementError } from './errors';
import { endpointOf } from './routes';
import { TokenUses } from './token-uses';

export const SCOPE_METADATA = 'management:scope';
const BEARER = /^Bearer +(.*)$/is;

/** Codes of credentials that were never issued as tokens. A revoked or an expired one is no guess. */
const GUESSES: readonly string[] = ['invalid_token', 'inference_key_not_accepted'];

/** Declares the scope that an endpoint needs. */
export const NeedsScope = (scope: Scope) => SetMetadata(SCOPE_METADATA, scope);

/** The token that the guard admitted, and its tenant. */
export interface Caller {
  tokenId: string;
  tenantId: string;
}

type CallerRequest = FastifyRequest & { managementCaller?: Caller };

/** The Caller, as a parameter of a guarded endpoint. */
export const FromCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => callerOf(context));

function callerOf(context: ExecutionContext): Caller {
  const caller = context.switchToHttp().getRequest<CallerRequest>().managementCaller;
  if (!caller) throw new Error('endpoint without TokenGuard');
  return caller;
}

/** The Author of the changes of a guarded endpoint, as a parameter. */
export const ByCaller = createParamDecorator((_: unknown, context: ExecutionContext): Author => {
  return { kind: 'token', id: callerOf(context).tokenId, name: null, ...originOf(context) };
});

/**
 * Admits a management token that is known, in force and has the scope of the endpoint. The order of the checks is part
 * of the contract: credential present → kind → known → revoked → expired → request limit → scope → query → body. The
 * body is read only then.
 */
@Injectable()
export class TokenGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly credentials: CredentialStore,
    private readonly uses: TokenUses,
    private readonly rates: CallRates,
    private readonly credentialGuard: CredentialGuard,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<CallerRequest>();
    // Answers contain keys and data of the tenant, so no cache may keep them.
    http.getResponse<FastifyReply>().header('cache-control', 'no-store');
    const nowMs = Date.now();
    const token = await this.admit(request.raw, nowMs);
    this.uses.record(token.id, nowMs);
    const waitMs = await this.rates.take(token, nowMs);
    if (waitMs > 0)
      throw managementError('rate_limited', undefined, { 'retry-after': String(Math.ceil(waitMs / 1_000)) });
    const scope = this.reflector.get<Scope>(SCOPE_METADATA, context.getHandler());
    if (!token.scopes.includes(scope)) {
      throw managementError('insufficient_scope', `This endpoint needs a management token with the scope ${scope}.`);
    }
    request.managementCaller = { tokenId: token.id, tenantId: token.tenantId };
    refuseUnknownParameters(request.query, endpointOf(request).query);
    await receiveBody(request, http.getResponse<FastifyReply>());
    return true;
  }

  /** Credentials of a client that sent too many wrong ones are not checked. */
  private async admit(request: IncomingMessage, nowMs: number): Promise<CredentialRecord> {
    const waitMs = this.credentialGuard.waitMs(request);
    if (waitMs > 0) throw rateLimited(waitMs);
    try {
      const token = await this.authenticate(request.headers.authorization, nowMs);
      this.credentialGuard.admitted(request);
      return token;
    } catch (error) {
      const isGuess = error instanceof ApiError && GUESSES.includes(error.code);
      const furtherMs = isGuess ? this.credentialGuard.failed(request) : 0;
      throw furtherMs > 0 ? rateLimited(furtherMs) : error;
    }
  }

  private async authenticate(header: string | undefined, nowMs: number): Promise<CredentialRecord> {
    const value = BEARER.exec(header ?? '')?.[1]?.trim();
    if (!value) throw managementError('missing_credential');
    if (value.startsWith(CREDENTIAL_PREFIX.key)) throw managementError('inference_key_not_accepted');
    if (!isWellFormedCredential('token', value)) throw managementError('invalid_token');
    const record = await this.credentials.lookup(hashCredential(value));
    if (record?.kind !== 'token') throw managementError('invalid_token');
    if (record.revokedAtMs !== null) throw managementError('token_revoked');
    if (record.expiresAtMs !== null && record.expiresAtMs <= nowMs) throw managementError('token_expired');
    return record;
  }
}

function rateLimited(waitMs: number): ApiError {
  const { message, retryAfterSeconds } = tooManyAttempts(waitMs);
  return managementError('rate_limited', message, { 'retry-after': String(retryAfterSeconds) });
}
