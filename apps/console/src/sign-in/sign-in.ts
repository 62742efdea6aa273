import { Injectable } from '@nestjs/common';
import { query } from '@tollgate/postgres';
import { logger, settlesWithin } from '@tollgate/runtime';
import { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { ConsoleOptions } from '../options';
import { signInLibrary, type SignInLibrary } from './better-auth';
import { problemOfIssuer } from './issuer-problem';
import { passingOutages } from './library-outages';
import { OIDC_PROVIDER, providerSignIn, type ProviderSignIn } from './oidc';

/** How often an issuer that did not answer is asked again, at most. */
const OIDC_RETRY_MS = 30_000;
/** How long a start, or the page for sign-in, waits for the issuer. A later answer counts, too. */
export const ISSUER_WAIT_MS = 3_000;

/** A signed-in person. */
export interface SignedIn {
  userId: string;
  sessionId: string;
  name: string;
  email: string;
  hasTotp: boolean;
  signedInAtMs: number;
}

/** The sign-in library, made when the console's public origin is known. */
@Injectable()
export class SignIn {
  private library: SignInLibrary | undefined;
  private ownOrigin = '';
  /** By the clock of the process, which never jumps. */
  private oidcTriedAtMs = -Infinity;
  private isIssuerAway = false;

  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly options: ConsoleOptions,
  ) {}

  /** Called once, when the server listens. */
  async serveAt(origin: string): Promise<void> {
    this.ownOrigin = origin;
    this.library = this.newLibrary(false);
    await this.library.$context;
    await this.askIssuer();
  }

  /** The console's public origin. */
  get origin(): string {
    return this.ownOrigin;
  }

  /** Throws `unavailable` until the server listens. */
  get auth(): SignInLibrary {
    if (!this.library) throw new ConsoleError('unavailable');
    return this.library;
  }

  /**
   * Who sent these headers; null without a session in force.
   * @param renew gets the cookie of a session that is extended. Without it none is: the cookie in the browser would end
   *   before its session.
   */
  async sessionOf(headers: Headers, renew?: (cookie: string) => void): Promise<SignedIn | null> {
    const asked = { headers, query: { disableRefresh: renew === undefined }, returnHeaders: true } as const;
    const { headers: answered, response: found } = await passingOutages(() => this.auth.api.getSession(asked));
    // The library would also delete the cookie of a session that ended, and this may be a late answer: the browser may
    // have a new one.
    if (!found) return null;
    for (const cookie of answered.getSetCookie()) renew?.(cookie);
    const { user, session } = found;
    const hasTotp = user.twoFactorEnabled === true;
    const signedInAtMs = session.createdAt.getTime();
    return { userId: user.id, sessionId: session.id, name: user.name, email: user.email, hasTotp, signedInAtMs };
  }

  /** Whether people can sign in by OpenID Connect now. An issuer that did not answer is asked again after a while. */
  async hasOidc(): Promise<boolean> {
    if (!this.options.oidc) return false;
    if (await this.offersOidc()) return true;
    if (performance.now() - this.oidcTriedAtMs < OIDC_RETRY_MS) return false;
    await this.askIssuer();
    return this.offersOidc();
  }

  /** Null: the person has no password, and signs in by the provider. */
  async isPassword(userId: string, password: string): Promise<boolean | null> {
    const sql = 'SELECT "password" AS hash FROM "account" WHERE "userId" = $1 AND "password" IS NOT NULL';
    const [row] = await query<{ hash: string }>(this.dataSource, sql, [userId]);
    if (!row) return null;
    return (await this.auth.$context).password.verify({ hash: row.hash, password });
  }

  /**
   * A library asks the issuer when it is made, for as long as the issuer takes, and answers no call before. So the
   * library in force stays until the new one knows the issuer.
   */
  private async askIssuer(): Promise<void> {
    const { oidc } = this.options;
    if (!oidc) return;
    this.oidcTriedAtMs = performance.now();
    const found: ProviderSignIn = {};
    const asked = providerSignIn.run(found, async () => {
      const library = this.newLibrary(true);
      if (await knowsIssuer(library)) this.library = library;
    });
    // The database may be unavailable.
    let failure: string | undefined;
    asked.catch((error: unknown) => (failure = String(error)));
    const isAnswered = await settlesWithin(ISSUER_WAIT_MS, asked);
    const offers = await this.offersOidc();
    // One line for each outage of the issuer.
    if (!offers && !this.isIssuerAway) {
      const reason = async () => failure ?? (await problemOfIssuer(oidc.issuer)) ?? found.reason;
      logger('console').warn(
        { issuer: oidc.issuer, reason: isAnswered ? await reason() : 'no answer yet' },
        'TOLLGATE_OIDC_ISSUER does not answer as an OpenID Connect issuer: people can sign in by password only',
      );
    }
    this.isIssuerAway = !offers;
  }

  private newLibrary(asksIssuer: boolean): SignInLibrary {
    const { secret, oidc } = this.options;
    return signInLibrary({ pool: this.dataSource.pool, secret, origin: this.ownOrigin, oidc, asksIssuer });
  }

  private offersOidc(): Promise<boolean> {
    return knowsIssuer(this.auth);
  }
}

async function knowsIssuer(library: SignInLibrary): Promise<boolean> {
  const { socialProviders } = await library.$context;
  return socialProviders.some(({ id }) => id === OIDC_PROVIDER);
}
