import type { BetterAuthPlugin } from 'better-auth';
import { createAuthMiddleware, getSessionFromCtx } from 'better-auth/api';
import { symmetricDecrypt } from 'better-auth/crypto';
import type { Pool } from 'pg';
import { takeStep } from './code-steps';

/** The only call of the library that checks a code of an authenticator. */
const VERIFY = '/two-factor/verify-totp';
/** The library's cookie of a sign-in that waits for its code. */
const WAITING_COOKIE = 'two_factor';
/** The library takes it for a wrong code. */
const NO_CODE = '';

type Context = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0];

/**
 * Each code of an authenticator is accepted once (RFC 6238, 5.2), also by several processes: the library itself accepts
 * it again while its time has not passed. The hook takes the code's time step before the library sees the code. If
 * the step cannot be taken, the hook passes on a wrong code, which the library refuses and counts. A step stays taken
 * if the call then fails for another reason: the person uses the next code.
 */
export const codesWorkOnce = (pool: Pool) =>
  ({
    id: 'used-codes',
    hooks: {
      before: [
        {
          matcher: ({ path }) => path === VERIFY,
          handler: createAuthMiddleware(async (ctx) => {
            const body = ctx.body as { code?: unknown } | undefined;
            // The library refuses what is no text.
            if (typeof body?.code !== 'string' || (await isNew(pool, ctx, body.code))) return;
            return { context: { body: { ...body, code: NO_CODE } } };
          }),
        },
      ],
    },
  }) satisfies BetterAuthPlugin;

/** Whether the code is right, and was not used before. Then it is used now. */
async function isNew(pool: Pool, ctx: Context, code: string): Promise<boolean> {
  const userId = await personOf(ctx);
  if (userId === null) return false;
  const sql = 'SELECT "secret" AS stored FROM "twoFactor" WHERE "userId" = $1';
  const [factor] = (await pool.query<{ stored: string }>(sql, [userId])).rows;
  if (!factor) return false;
  const { stored } = factor;
  const secret = await symmetricDecrypt({ key: ctx.context.secretConfig, data: stored });
  return takeStep(pool, { userId, stored, secret }, code);
}

/** Whose code the library checks: the code of the signed-in person, or else of the sign-in that waits for it. */
async function personOf(ctx: Context): Promise<string | null> {
  const session = await getSessionFromCtx(ctx, { disableRefresh: true });
  if (session) return session.user.id;
  const { name } = ctx.context.createAuthCookie(WAITING_COOKIE);
  const waiting = await ctx.getSignedCookie(name, ctx.context.secret);
  return waiting ? ((await ctx.context.internalAdapter.findVerificationValue(waiting))?.value ?? null) : null;
}
