import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import type { FastifyRequest } from 'fastify';
import type { SignedIn } from '../sign-in/sign-in';
import { type Origin, personAs } from './changes';
import type { OperatorAction, Role, TenantAction } from './roles';

/** The callers that a route allows: anybody, people who are signed in, or people with a right. */
export type Access = 'anybody' | 'signed-in' | { tenant: TenantAction } | { operator: OperatorAction };

export const ACCESS_METADATA = 'console:access';

/** Without a session. */
export const Anybody = () => SetMetadata(ACCESS_METADATA, 'anybody' satisfies Access);
export const AnySignedIn = () => SetMetadata(ACCESS_METADATA, 'signed-in' satisfies Access);
/** For those whose role in the tenant of the path (`:tenantId`) allows it. */
export const AllowInTenant = (action: TenantAction) =>
  SetMetadata(ACCESS_METADATA, { tenant: action } satisfies Access);
export const AllowOperator = (action: OperatorAction) =>
  SetMetadata(ACCESS_METADATA, { operator: action } satisfies Access);

/** The person behind a request, and the role in the tenant of the path. */
export interface Caller extends SignedIn {
  isOperator: boolean;
  /** The role in the tenant of the path; null on a route without a tenant. */
  role: Role | null;
}

export type CallerRequest = FastifyRequest & { consoleCaller?: Caller };

/** Where a request came from, for the audit log. */
export const originOf = ({ ip, id }: FastifyRequest): Origin => ({ address: ip, requestId: id });

/** The Caller, as a parameter of a route for people who are signed in. */
export const FromCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  const { consoleCaller } = context.switchToHttp().getRequest<CallerRequest>();
  if (!consoleCaller) throw new Error('a route for anybody has no caller');
  return consoleCaller;
});

/** The Author of the changes of a route for people who are signed in, as a parameter. */
export const ByCaller = createParamDecorator((_: unknown, context: ExecutionContext): Author => {
  const request = context.switchToHttp().getRequest<CallerRequest>();
  const { consoleCaller } = request;
  if (!consoleCaller) throw new Error('a route for anybody has no caller');
  return personAs(consoleCaller.userId, consoleCaller.email, originOf(request));
});
