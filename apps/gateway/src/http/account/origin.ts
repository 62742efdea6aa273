import type { ExecutionContext } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Where a request came from, for the audit log: its remote address, and the request id of its answer. */
export function originOf(context: ExecutionContext): Pick<Author, 'address' | 'requestId'> {
  const http = context.switchToHttp();
  const requestId = http.getResponse<FastifyReply>().getHeader('x-request-id');
  return {
    address: http.getRequest<FastifyRequest>().ip,
    requestId: typeof requestId === 'string' ? requestId : null,
  };
}
