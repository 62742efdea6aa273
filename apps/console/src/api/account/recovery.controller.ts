import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Anybody, originOf } from '../../access/allow';
import { Recoveries } from '../../access/recoveries';
import { bodyOf } from '../../http/body';
import type { RecoveryOffer } from '../answers';
import { EmailField, exact, NewPasswordField, SecretField } from '../fields';
import { Tries } from '../tries';
import { PasswordTries } from './password-tries';

const readEmail = bodyOf(Type.Object({ email: EmailField }, exact));
const readSecret = bodyOf(Type.Object({ secret: SecretField }, exact));
const readPassword = bodyOf(Type.Object({ secret: SecretField, password: NewPasswordField }, exact));

/** What a person does who forgot the password. The secret is in the body: a path would be logged. */
@Controller('console/api/recovery')
export class RecoveryController {
  private readonly requests = new Tries();
  private readonly tries = new Tries();

  constructor(
    private readonly recoveries: Recoveries,
    private readonly passwordTries: PasswordTries,
  ) {}

  /** The same answer for every address. */
  @Post('request')
  @HttpCode(204)
  @Anybody()
  request(@Req() request: FastifyRequest): void {
    this.requests.take(request.ip);
    this.recoveries.request(readEmail(request).email.toLowerCase());
  }

  @Post('look')
  @HttpCode(200)
  @Anybody()
  async look(@Req() request: FastifyRequest): Promise<RecoveryOffer> {
    this.tries.take(request.ip);
    const { email, removesTotp } = await this.recoveries.look(readSecret(request).secret);
    return { email, removesTotp };
  }

  /** Opens no session: the person signs in with the new password, and with the second factor, if it stays. */
  @Post('use')
  @HttpCode(200)
  @Anybody()
  async use(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): Promise<RecoveryOffer> {
    this.tries.take(request.ip);
    const { secret, password } = readPassword(request);
    const { email, removesTotp } = await this.recoveries.use(secret, password, originOf(request));
    reply.header('set-cookie', this.passwordTries.cookieFor(email));
    return { email, removesTotp };
  }
}
