import { TENANT_ROLES, type TenantRole } from './access/roles';
import type { ConsoleSettings } from './settings';

/** What the members of a group of the provider are: operators, or members of a tenant. */
export type GroupRole = { group: string } & ({ operator: true } | { tenantId: string; role: TenantRole });

/** Sign-in by OpenID Connect. */
export interface OidcOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Verified addresses of these domains may create an account. Empty: only people with an account sign in. */
  domains: readonly string[];
  /** The claim that names the groups of a person. */
  rolesClaim: string;
  /** Empty: the provider decides about no roles. */
  roles: readonly GroupRole[];
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
  const granted = { rolesClaim: settings.TOLLGATE_OIDC_ROLES_CLAIM, roles: groupRoles(settings.TOLLGATE_OIDC_ROLES) };
  const oidc = issuer && clientId && clientSecret ? { issuer, clientId, clientSecret, domains, ...granted } : null;
  return { oidc, mail: url === undefined ? null : { url, from } };
}

/** The roles of groups, as TOLLGATE_OIDC_ROLES has them. Its form was checked. */
function groupRoles(setting: string | undefined): GroupRole[] {
  return (setting?.split(',') ?? []).map((one) => {
    const split = one.indexOf('=');
    const [group, granted] = [one.slice(0, split), one.slice(split + 1)];
    if (granted === 'operator') return { group, operator: true };
    const [tenantId = '', name] = granted.split(':');
    return { group, tenantId, role: TENANT_ROLES.find((role) => role === name)! };
  });
}
