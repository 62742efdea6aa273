import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { Invitations } from '../../access/invitations';
import { Members } from '../../access/members';
import { actionsOf, mayGrant, TENANT_ROLES, type TenantRole } from '../../access/roles';
import { bodyOf, queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import { Mailer } from '../../http/mailer';
import type { InvitationCreated, MemberList } from '../answers';
import { EmailField, exact, RoleField, TimedPage } from '../fields';
import { Tries } from '../tries';

const readRole = bodyOf(Type.Object({ role: RoleField }, exact));
const readInvitation = bodyOf(Type.Object({ email: EmailField, role: RoleField }, exact));

const readPage = queryOf(TimedPage);

/** Invitations of a tenant that are mailed in an hour. Each process counts by itself. */
export const MAX_INVITATION_MAILS = 200;
/** Of these, the mails to one address. */
export const MAX_MAILS_TO_ONE = 5;
const HOUR_MS = 60 * 60_000;
const WAIT_WITH_MAILS =
  `The console mails at most ${MAX_INVITATION_MAILS} invitations of a tenant in an hour. ` +
  'Wait until an hour has passed since the first of them.';
const WAIT_WITH_THIS_ONE =
  `The console mails at most ${MAX_MAILS_TO_ONE} invitations of a tenant to one address in an hour. ` +
  'Wait until an hour has passed since the first of them.';

const ROLES = TENANT_ROLES.map((role) => ({ role, actions: actionsOf(role) }));

/** The people of a tenant. */
@Controller('console/api/tenants/:tenantId')
export class MembersController {
  private readonly tries = new Tries();
  private readonly mails = new Tries(MAX_INVITATION_MAILS, HOUR_MS, WAIT_WITH_MAILS);
  private readonly mailsToOne = new Tries(MAX_MAILS_TO_ONE, HOUR_MS, WAIT_WITH_THIS_ONE);

  constructor(
    private readonly members: Members,
    private readonly invitations: Invitations,
    private readonly mailer: Mailer,
    private readonly services: ServiceClient,
  ) {}

  @Get('members')
  @AllowInTenant('members.read')
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<MemberList> {
    const [members, invitations] = await Promise.all([
      this.members.list(tenantId, readPage(query)),
      this.invitations.list(tenantId),
    ]);
    return { ...members, invitations, roles: ROLES };
  }

  /** Without SMTP, or when the server does not take the mail, the answer has the link. */
  @Post('invitations')
  @AllowInTenant('members.write')
  async invite(
    @Param('tenantId') tenantId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<InvitationCreated> {
    this.tries.take(caller.userId);
    const { email, role } = readInvitation(request);
    requireGrant(caller, role);
    const invited = { email: email.toLowerCase(), tenantId, role };
    if (this.mailer.isConfigured) {
      this.mailsToOne.take(`${tenantId} ${invited.email}`);
      this.mails.take(tenantId);
    }
    const { name: tenantName } = await this.services.request('auth.tenants.get', { tenantId });
    const created = await this.invitations.create(by, invited);
    const { link, expiresAt } = created;
    if (!this.mailer.isConfigured) return { link, expiresAt };
    try {
      await this.mailer.sendInvitation(invited.email, { link, tenantName });
      await this.invitations.noteMailed(created.id);
      return { link: null, expiresAt };
    } catch (error) {
      logger('console').warn({ reason: String(error) }, 'an invitation could not be mailed, so its link was shown');
      return { link, expiresAt };
    }
  }

  @Delete('invitations/:id')
  @AllowInTenant('members.write')
  @HttpCode(204)
  async withdraw(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
  ): Promise<void> {
    await this.invitations.withdraw(by, tenantId, id, mayChange(caller));
  }

  @Patch('members/:userId')
  @AllowInTenant('members.write')
  @HttpCode(204)
  async setRole(
    @Param('tenantId') tenantId: string,
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const { role } = readRole(request);
    requireGrant(caller, role);
    await this.members.setRole(by, { tenantId, userId, role }, mayChange(caller, role));
  }

  @Delete('members/:userId')
  @AllowInTenant('members.write')
  @HttpCode(204)
  async remove(
    @Param('tenantId') tenantId: string,
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
  ): Promise<void> {
    await this.members.remove(by, tenantId, userId, mayChange(caller));
  }
}

/**
 * For a role that is given, and for the role of a member who is changed or an invitation that is withdrawn. An admin
 * changes only roles that it may give.
 */
export function requireGrant({ role }: Pick<Caller, 'role'>, granted: TenantRole): void {
  if (role === null || !mayGrant(role, granted)) throw new ConsoleError('forbidden', 'Only an owner may do this.');
}

/**
 * The same by the caller's role when the change is made: another owner may have taken it since the request began.
 * `given`: the next role of the member.
 */
function mayChange({ isOperator }: Caller, given?: TenantRole) {
  return (present: TenantRole, own: TenantRole | null): void => {
    const role = isOperator ? 'operator' : own;
    if (role === null) throw new ConsoleError('not_found');
    requireGrant({ role }, present);
    if (given !== undefined) requireGrant({ role }, given);
  };
}
