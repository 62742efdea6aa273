import { Injectable } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../access/allow';
import { bodyOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import { FRESH_S, MAX_PASSWORD_CHARS } from '../../sign-in/better-auth';
import { SignIn } from '../../sign-in/sign-in';
import { exact } from '../fields';
import { PasswordTries } from './password-tries';

/** The caller's own. Empty: the caller has none. */
export const OwnPasswordField = Type.String({ maxLength: MAX_PASSWORD_CHARS });
export const readProof = bodyOf(Type.Object({ password: OwnPasswordField }, exact));

/** The proof that the person asks for what opens or ends an account, and not somebody who only has the session. */
@Injectable()
export class Proofs {
  constructor(
    private readonly signIn: SignIn,
    private readonly tries: PasswordTries,
  ) {}

  /**
   * Checks the person's own password, which is in the request. A person without one must have signed in within FRESH_S.
   * Errors: rate_limited, invalid_credentials, sign_in_again.
   */
  async require({ userId, email, signedInAtMs }: Caller, password: string, request: FastifyRequest): Promise<void> {
    const check = () => this.signIn.isPassword(userId, password);
    const from = { email, cookies: request.headers.cookie, isSignedIn: true };
    const isRight = await this.tries.limited(from, check, (answer) => answer === false);
    if (isRight === false) throw new ConsoleError('invalid_credentials', 'The password is wrong.');
    if (isRight === null && Date.now() - signedInAtMs > FRESH_S * 1_000) throw new ConsoleError('sign_in_again');
  }
}
