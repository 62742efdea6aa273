import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../management/envelope';

export const OPERATOR_SECRET = Symbol('operator secret');

/** Lets in whoever has the operator secret; compared by hash, in constant time. */
@Injectable()
export class SecretGuard implements CanActivate {
  private readonly expected: Buffer;

  constructor(@Inject(OPERATOR_SECRET) secret: string) {
    this.expected = hash('sha256', secret, 'buffer');
  }

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    http.getResponse<FastifyReply>().header('cache-control', 'no-store');
    const header = http.getRequest<FastifyRequest>().headers.authorization ?? '';
    const value = /^Bearer +(.*)$/is.exec(header)?.[1]?.trim();
    if (!value) throw new ApiError('missing_credential');
    if (!timingSafeEqual(hash('sha256', value, 'buffer'), this.expected)) throw new ApiError('invalid_secret');
    return true;
  }
}
