import type { BetterAuthPlugin } from 'better-auth';
import { APIError, getOAuthState } from 'better-auth/api';
import type { Pool } from 'pg';
import { accountIdOf, issuerOf, subjectOf, withinLimit, withoutSlash } from './issuer-answers';
import { OIDC_PROVIDER } from './oidc';

/** Nothing reads them. */
const NO_TOKENS = {
  ...{ idToken: null, accessToken: null, refreshToken: null },
  ...{ accessTokenExpiresAt: null, refreshTokenExpiresAt: null },
};
const ANOTHER_SUBJECT = {
  code: 'another_subject',
  message: 'The account of this address is connected with another account of the provider.',
};

/**
 * What the library leaves open about the provider: an account belongs to a subject of one issuer, the issuer must be
 * the configured one (OpenID Connect Discovery 4.3) and answer in time, the profile must be that of the ID token (Core
 * 5.3.2), and no token is stored. Comes after the plugin that makes the provider.
 */
export const issuerAccounts = (pool: Pool, configured: string) =>
  ({
    id: 'issuer-accounts',
    async init({ socialProviders, logger }) {
      const provider = socialProviders.find(({ id }) => id === OIDC_PROVIDER);
      if (!provider) return {};
      const issuer = withoutSlash(provider.issuer ?? '');
      if (issuer !== withoutSlash(configured)) {
        logger.error(`its discovery document names the issuer ${JSON.stringify(provider.issuer)}`);
        return { context: { socialProviders: [] } };
      }
      const first = await firstIssuer(pool, issuer);
      const bound: typeof provider = {
        ...provider,
        validateAuthorizationCode: (data) => withinLimit(provider.validateAuthorizationCode(data)),
        getUserInfo: (tokens) => withinLimit(provider.getUserInfo(tokens)),
        accountSubject({ tokens, profile }) {
          const { sub } = profile as { sub?: unknown };
          if (typeof sub !== 'string' || sub !== subjectOf(tokens.idToken))
            throw new Error('the profile is not that of the ID token');
          return accountIdOf(sub, issuer, first);
        },
      };
      const refuseAnotherSubject = async (userId: string) => {
        // The person is signed in, and asks for it.
        if ((await getOAuthState())?.link) return;
        const sql = 'SELECT "accountId" FROM "account" WHERE "userId" = $1 AND "providerId" = $2';
        const { rows } = await pool.query<{ accountId: string }>(sql, [userId, OIDC_PROVIDER]);
        if (rows.some(({ accountId }) => issuerOf(accountId, first) === issuer))
          throw new APIError('CONFLICT', ANOTHER_SUBJECT);
      };
      const account = {
        create: {
          before: async ({ userId, providerId }: { userId: string; providerId: string }) => {
            if (providerId !== OIDC_PROVIDER) return;
            await refuseAnotherSubject(userId);
            return { data: NO_TOKENS };
          },
        },
        update: {
          before: ({ providerId }: { providerId?: unknown }) =>
            Promise.resolve(providerId === OIDC_PROVIDER ? { data: NO_TOKENS } : undefined),
        },
      };
      return { context: { socialProviders: [bound] }, options: { databaseHooks: { account } } };
    },
  }) satisfies BetterAuthPlugin;

/** The issuer whose subjects are stored without it: this one, if there is none yet. */
async function firstIssuer(pool: Pool, issuer: string): Promise<string> {
  await pool.query('INSERT INTO first_issuer (issuer) VALUES ($1) ON CONFLICT DO NOTHING', [issuer]);
  const { rows } = await pool.query<{ issuer: string }>('SELECT issuer FROM first_issuer');
  return rows[0]!.issuer;
}
