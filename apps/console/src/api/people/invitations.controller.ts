import { Controller, HttpCode, Post, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { Anybody, AnySignedIn, FromCaller, originOf, type Caller } from '../../access/allow';
import { Invitations, type Invited } from '../../access/invitations';
import { bodyOf } from '../../http/body';
import type { InvitationOffer } from '../answers';
import { checkedName, EmailField, exact, NameField, NewPasswordField, SecretField } from '../fields';
import { Tries } from '../tries';

const readSecret = bodyOf(Type.Object({ secret: SecretField }, exact));
const readAccount = bodyOf(
  Type.Object({ secret: SecretField, name: NameField, email: EmailField, password: NewPasswordField }, exact),
);

/** What the holder of a link may do. The secret is in the body: a path would be logged. */
@Controller('console/api/invitation')
export class InvitationsController {
  private readonly tries = new Tries();

  constructor(
    private readonly invitations: Invitations,
    private readonly services: ServiceClient,
  ) {}

  @Post('look')
  @HttpCode(200)
  @Anybody()
  async look(@Req() request: FastifyRequest): Promise<InvitationOffer> {
    this.tries.take(request.ip);
    return this.offerOf(await this.invitations.look(readSecret(request).secret));
  }

  /** Creates an account. The page then signs in with it. */
  @Post('accept-as-new')
  @Anybody()
  async acceptAsNew(@Req() request: FastifyRequest): Promise<InvitationOffer> {
    this.tries.take(request.ip);
    const { secret, name, email, password } = readAccount(request);
    const person = { name: checkedName(name), email, password };
    return this.offerOf(await this.invitations.acceptAsNew(person, secret, originOf(request)));
  }

  @Post('accept')
  @HttpCode(200)
  @AnySignedIn()
  async accept(@FromCaller() caller: Caller, @Req() request: FastifyRequest): Promise<InvitationOffer> {
    this.tries.take(request.ip);
    return this.offerOf(await this.invitations.acceptAs(caller, readSecret(request).secret, originOf(request)));
  }

  private async offerOf({ email, operator, tenantId, role }: Invited): Promise<InvitationOffer> {
    const tenant = tenantId === null ? null : await this.services.request('auth.tenants.get', { tenantId });
    return { email, operator, tenantName: tenant?.name ?? null, role };
  }
}
