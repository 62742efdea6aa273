import { Injectable } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Caller } from '../../access/allow';
import { bodyOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import { FRESH_S, MAX_PASSWORD_CHARS } from '../../sign-in/better-auth';
import { SignIn } from '../../sign-in/sign-in';
import { exact } from '../fields';
import { Tries } from '../tries';

/** The caller's own. Empty: the caller has none. */
export const OwnPasswordField = Type.String({ maxLength: MAX_PASSWORD_CHARS });
export const readProof = bodyOf(Type.Object({ password: OwnPasswordField }, exact));

/** The proof that the person, and not only whoever has the session, asks for what opens or ends an account. */
@Injectable()
export class Proofs {
  private readonly tries = new Tries();

  constructor(private readonly signIn: SignIn) {}

  /**
   * The own password. A person without one must have signed in within FRESH_S. Errors: rate_limited,
   * invalid_credentials, sign_in_again.
   */
  async require({ userId, signedInAtMs }: Caller, password: string): Promise<void> {
    this.tries.take(userId);
    const isRight = await this.signIn.isPassword(userId, password);
    if (isRight === false) throw new ConsoleError('invalid_credentials', 'The password is wrong.');
    if (isRight === null && Date.now() - signedInAtMs > FRESH_S * 1_000) throw new ConsoleError('sign_in_again');
  }
}
