import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../http/api-error';
import { RefusedSecrets } from './refused-secrets';

export const OPERATOR_SECRET = Symbol('operator secret');

/**
 * Admits callers with the operator secret. Secrets are compared by hash, in constant time. Wrong secrets of an address
 * are refused without a check after a few in a minute.
 */
@Injectable()
export class SecretGuard implements CanActivate {
  private readonly expected: Buffer;
  private readonly refused = new RefusedSecrets();

  constructor(@Inject(OPERATOR_SECRET) secret: string) {
    this.expected = hash('sha256', secret, 'buffer');
  }

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    http.getResponse<FastifyReply>().header('cache-control', 'no-store');
    const request = http.getRequest<FastifyRequest>();
    const value = /^Bearer +(.*)$/is.exec(request.headers.authorization ?? '')?.[1]?.trim();
    if (!value) throw new ApiError('missing_credential');
    const address = request.ip;
    const waitMs = this.refused.waitMs(address);
    if (waitMs > 0 && !this.refused.isTrusted(address)) throw tooMany(waitMs);
    if (timingSafeEqual(hash('sha256', value, 'buffer'), this.expected)) {
      this.refused.trust(address);
      return true;
    }
    if (waitMs > 0) throw tooMany(waitMs);
    this.refused.add(address);
    throw new ApiError('invalid_secret');
  }
}

const tooMany = (waitMs: number): ApiError =>
  new ApiError('too_many_attempts', undefined, { 'retry-after': String(Math.ceil(waitMs / 1000)) });
