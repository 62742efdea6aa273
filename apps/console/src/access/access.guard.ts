import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { isId } from '@tollgate/contracts';
import type { FastifyReply } from 'fastify';
import { ConsoleError } from '../http/errors';
import { headersOf } from '../sign-in/headers';
import { SignIn } from '../sign-in/sign-in';
import { type Access, ACCESS_METADATA, type CallerRequest } from './allow';
import { KnownTenants } from './known-tenants';
import { Members } from './members';
import { mayDo, type Role } from './roles';

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Decides who may call a route, in this order:
 * 1. A write must come from a page of the console itself.
 * 2. The person must be signed in.
 * 3. The person must belong to the tenant of the path, or be an operator. Otherwise the tenant does not exist: 404,
 *    never 403.
 * 4. The role must allow the action: 403.
 * A route that does not say who may call it cannot be called.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly signIn: SignIn,
    private readonly members: Members,
    private readonly tenants: KnownTenants,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<CallerRequest>();
    const access = this.reflector.get<Access | undefined>(ACCESS_METADATA, context.getHandler());
    if (access === undefined) throw new ConsoleError('not_found');
    if (!READS.has(request.method)) this.requireOwnOrigin(request);
    if (access !== 'anybody') await this.check(request, access, http.getResponse<FastifyReply>());
    return true;
  }

  /**
   * The person of the request may do this now, and is its caller. Errors: unauthenticated, not_found, forbidden.
   * @param reply takes the cookie of a session that is extended. Without it none is, as for a stream whose headers are
   *   sent already.
   */
  async check(request: CallerRequest, access: Exclude<Access, 'anybody'>, reply?: FastifyReply): Promise<void> {
    const renew = reply && ((cookie: string) => void reply.header('set-cookie', cookie));
    const person = await this.signIn.sessionOf(headersOf(request), renew);
    if (!person) throw new ConsoleError('unauthenticated');
    const isOperator = await this.members.isOperator(person.userId);
    const tenantId = (request.params as { tenantId?: string }).tenantId;
    const role = tenantId === undefined ? null : await this.roleIn(tenantId, person.userId, isOperator);
    request.consoleCaller = { ...person, isOperator, role };
    if (access === 'signed-in') return;
    // For others, things that only operators can see do not exist.
    if ('operator' in access && !isOperator) throw new ConsoleError('not_found');
    if ('tenant' in access && (role === null || !mayDo(role, access.tenant))) throw new ConsoleError('forbidden');
  }

  /** Browsers send Origin with every write. A page of another site cannot forge it. */
  private requireOwnOrigin({ headers }: CallerRequest): void {
    const { origin } = this.signIn;
    if (headers.origin === origin) return;
    // A person who opened the console by another of its names learns which one works.
    throw new ConsoleError('wrong_origin', `Only pages of ${origin}/console may do this. Open that address.`);
  }

  private async roleIn(tenantId: string, userId: string, isOperator: boolean): Promise<Role> {
    if (isOperator) {
      await this.tenants.require(tenantId);
      return 'operator';
    }
    const role = isId('ten', tenantId) ? await this.members.roleOf(userId, tenantId) : null;
    if (role === null) throw new ConsoleError('not_found');
    return role;
  }
}
