import { RequestError } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { PlanConfig } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';

/**
 * Moves the keys of a tenant to the profiles of its next plan, in the transaction that has locked the tenant. A key
 * keeps the name of its profile unless `wanted` names another one. All keys and tokens become due for projection,
 * because the edge keeps the plan with each. Returns the profiles that changed. RequestError invalid_profile: `wanted`
 * names a profile that no key has, or that the plan lacks; profiles_missing: the plan lacks profiles in use.
 */
export async function moveProfiles(
  tx: EntityManager,
  tenantId: string,
  plan: Pick<PlanConfig, 'id' | 'profiles'>,
  wanted: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const used = await query<{ profile: string; keys: number }>(
    tx,
    `SELECT profile, count(*)::int AS keys FROM credential
      WHERE tenant_id = $1 AND kind = 'key' AND revoked_at IS NULL GROUP BY profile ORDER BY profile`,
    [tenantId],
  );
  const has = (profile: string) => plan.profiles.some(({ id }) => id === profile);
  for (const [from, to] of Object.entries(wanted)) {
    if (!used.some(({ profile }) => profile === from))
      throw new RequestError('invalid_profile', `profiles: no key has the profile ${from}.`);
    if (!has(to)) throw new RequestError('invalid_profile', `profiles: plan ${plan.id} has no profile ${to}.`);
  }
  const next = new Map(
    used.map(({ profile }) => [profile, Object.hasOwn(wanted, profile) ? wanted[profile]! : profile]),
  );
  const missing = used.filter(({ profile }) => !has(next.get(profile)!));
  if (missing.length > 0) {
    const lines = missing.map(({ profile, keys }) => `${profile} (keys: ${keys})`).join(', ');
    throw new RequestError(
      'profiles_missing',
      `Plan ${plan.id} lacks profiles that keys have: ${lines}. Name another one for each in profiles. ` +
        `The plan has: ${plan.profiles.map(({ id }) => id).join(', ')}.`,
    );
  }
  const moved = [...next].filter(([from, to]) => from !== to);
  await query(
    tx,
    `UPDATE credential SET version = version + 1,
        profile = coalesce((SELECT m.into FROM unnest($2::text[], $3::text[]) AS m (profile, "into")
                            WHERE kind = 'key' AND m.profile = credential.profile), credential.profile)
      WHERE tenant_id = $1 AND revoked_at IS NULL`,
    [tenantId, moved.map(([from]) => from), moved.map(([, to]) => to)],
  );
  return Object.fromEntries(moved);
}
