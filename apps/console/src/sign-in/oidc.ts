import { MAX_NAME_CHARS, validateName } from '@tollgate/contracts';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { OidcOptions } from '../options';
import { discoveryUrlOf } from './issuer-answers';

export const OIDC_PROVIDER = 'oidc';
const MAX_EMAIL_CHARS = 254;
/**
 * The characters whose lower case is an ASCII letter, such as the Kelvin sign. With them, two different addresses would
 * count as the same.
 */
const BECOMES_ASCII = /[\u0130\u212a]/;

/** What a sign-in by OpenID Connect found out, for the code that called the library. */
export interface ProviderSignIn {
  userId?: string;
  /** The verified address of the profile. */
  email?: string;
  /** Values of the claim that names roles. Undefined: no profile was read. */
  groups?: readonly string[];
  /** What the library would have logged. */
  reason?: string;
}

/** The sign-in in progress: the library tells its hooks neither the profile nor the caller. */
export const providerSignIn = new AsyncLocalStorage<ProviderSignIn>();

/** The provider in the form of the library. */
export function providerOf({ issuer, clientId, clientSecret, domains, rolesClaim }: OidcOptions) {
  return {
    providerId: OIDC_PROVIDER,
    name: 'Single sign-on',
    clientId,
    clientSecret,
    discoveryUrl: discoveryUrlOf(issuer),
    requireIdTokenVerification: true,
    scopes: ['openid', 'email', 'profile'],
    pkce: true,
    disableProviderLogout: true,
    /** Without allowed domains, the provider creates no accounts: it signs in people who have one. */
    disableSignUp: domains.length === 0,
    mapProfileToUser(profile: Record<string, unknown>) {
      const given = textOf(profile['email']);
      const email = given.toLowerCase();
      const isVerified = profile['email_verified'] === true;
      const isAllowed = domains.length === 0 || domains.includes(email.split('@').at(-1) ?? '');
      // It is shown like a name, and people know each other by it.
      const isPlain = email.length <= MAX_EMAIL_CHARS && validateName(email) === null && !BECOMES_ASCII.test(given);
      // The library refuses a profile without an address. An unverified one could belong to somebody else.
      if (!isVerified || !isAllowed || !isPlain) return { email: '', emailVerified: false };
      const signIn = providerSignIn.getStore();
      if (signIn) Object.assign(signIn, { email, groups: groupsOf(profile[rolesClaim]) });
      return { email, emailVerified: true, name: nameOf(profile) ?? email };
    },
  };
}

const textOf = (claim: unknown): string => (typeof claim === 'string' ? claim : '');

/** The name of a profile, if it is one by our rules. */
function nameOf(profile: Record<string, unknown>): string | null {
  const name = textOf(profile['name']).trim();
  return name.length <= MAX_NAME_CHARS && validateName(name) === null ? name : null;
}

/** Providers send one group as a text, and several as a list. */
const groupsOf = (claim: unknown): string[] =>
  [claim].flat().filter((value): value is string => typeof value === 'string');
