import type { ConsoleSettings } from './settings';

/** Sign-in by OpenID Connect. */
export interface OidcOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Verified addresses of these domains may make an account. Empty: only people with an account sign in. */
  domains: readonly string[];
}

export interface MailOptions {
  url: string;
  from: string;
}

/** What the composition knows of the console's surroundings. */
export abstract class ConsoleOptions {
  abstract readonly databaseUrl: string;
  /** Signs cookies, and encrypts the secrets of TOTP in the database. */
  abstract readonly secret: string;
  abstract readonly oidc: OidcOptions | null;
  abstract readonly mail: MailOptions | null;
  /** Proxies whose `X-Forwarded-For` is believed. */
  abstract readonly trustedProxies?: string | undefined;
}

/** The part of the options that comes from settings. OpenID Connect needs all three of its settings. */
export function optionsOf(settings: ConsoleSettings): Pick<ConsoleOptions, 'oidc' | 'mail'> {
  const { TOLLGATE_OIDC_ISSUER: issuer, TOLLGATE_OIDC_CLIENT_ID: clientId } = settings;
  const { TOLLGATE_OIDC_CLIENT_SECRET: clientSecret, TOLLGATE_SMTP_URL: url, TOLLGATE_SMTP_FROM: from } = settings;
  const domains = settings.TOLLGATE_OIDC_DOMAINS?.split(',') ?? [];
  const oidc = issuer && clientId && clientSecret ? { issuer, clientId, clientSecret, domains } : null;
  return { oidc, mail: url === undefined ? null : { url, from } };
}
