import { Injectable } from '@nestjs/common';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { ConsoleOptions } from '../../options';
import { SignIn } from '../../sign-in/sign-in';
import { Tries } from '../tries';

/** Wrong passwords for one address of e-mail in WINDOW_MS, from all browsers that do not know the account. */
const MAX_WRONG_PASSWORDS = 20;
const WINDOW_MS = 15 * 60_000;
const KNOWN_S = 365 * 24 * 60 * 60;
const NONCE_BYTES = 16;
const WAIT =
  'Too many wrong passwords for this account. Wait 15 minutes, sign in by passkey or single sign-on, or use a ' +
  'browser in which you have signed in before.';
const WAIT_IN_SESSION =
  'Too many wrong passwords for this account. Wait 15 minutes, or use a browser in which you have signed in by ' +
  'password before.';

/**
 * Limits wrong passwords by account, because the limit by address does not stop a guesser with many addresses. Such a
 * guesser must not lock the person out: a browser that has entered the right password has a cookie, and its wrong
 * passwords are counted apart from all others. The cookie opens nothing. Addresses without an account are counted, too,
 * so the answer tells nothing about them. Passwords that a signed-in person enters are limited, too, because the
 * session may be stolen. They are counted apart: anybody can enter wrong ones at the sign-in.
 */
@Injectable()
export class PasswordTries {
  private readonly atSignIn = new Tries(MAX_WRONG_PASSWORDS, WINDOW_MS, WAIT);
  private readonly inSessions = new Tries(MAX_WRONG_PASSWORDS, WINDOW_MS, WAIT_IN_SESSION);

  constructor(
    private readonly options: ConsoleOptions,
    private readonly signIn: SignIn,
  ) {}

  /**
   * A call that checks the password of an account. `isWrong` recognises a wrong password by the answer. Error:
   * rate_limited.
   */
  async limited<T>(
    { email, cookies, isSignedIn }: { email: string; cookies: string | undefined; isSignedIn: boolean },
    call: () => Promise<T>,
    isWrong: (answer: T) => boolean,
  ): Promise<T> {
    const counted = this.knownBrowser(email, cookies) ?? this.macOf(email, '');
    const tries = isSignedIn ? this.inSessions : this.atSignIn;
    tries.take(counted);
    let counts = false;
    try {
      const answer = await call();
      counts = isWrong(answer);
      return answer;
    } finally {
      if (!counts) tries.giveBack(counted);
    }
  }

  /** For a browser that has shown the right password, or set it. */
  cookieFor(email: string): string {
    const nonce = randomBytes(NONCE_BYTES).toString('base64url');
    const value = `${nonce}.${this.macOf(email, nonce)}`;
    const secure = this.isSecure ? '; Secure' : '';
    return `${this.cookieName}=${value}; Max-Age=${KNOWN_S}; Path=/; HttpOnly; SameSite=Strict${secure}`;
  }

  /** What the wrong passwords of this browser are counted by. Null: it does not know the account. */
  private knownBrowser(email: string, cookies = ''): string | null {
    const prefix = `${this.cookieName}=`;
    const value = cookies.split('; ').find((cookie) => cookie.startsWith(prefix));
    const [nonce = '', mac = ''] = value?.slice(prefix.length).split('.') ?? [];
    const expected = Buffer.from(this.macOf(email, nonce));
    const given = Buffer.from(mac);
    return nonce !== '' && given.length === expected.length && timingSafeEqual(given, expected) ? mac : null;
  }

  private get isSecure(): boolean {
    return this.signIn.origin.startsWith('https:');
  }

  private get cookieName(): string {
    return this.isSecure ? '__Host-tollgate.known' : 'tollgate.known';
  }

  private macOf(email: string, nonce: string): string {
    const text = JSON.stringify(['known browser', email.toLowerCase(), nonce]);
    return createHmac('sha256', this.options.secret).update(text).digest('base64url');
  }
}
