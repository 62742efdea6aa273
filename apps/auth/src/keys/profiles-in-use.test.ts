import { StartError, type ConfigCheck, type ConfigSource, type PlanConfig } from '@tollgate/runtime';
import { openAuthDatabase } from '../database';
import { minted, useAuth } from '../running-auth.fixture';
import { ProfilesInUse } from './profiles-in-use';

const { auth, database } = useAuth();

it('auth refuses a configuration that lacks a profile of active keys, at the start and on a change', async () => {
  const tenantId = await auth.tenant('pro');
  const other = await auth.tenant('free');
  const key = (of: string, profile: string, more: { expiresAt?: string } = {}) =>
    auth.request('auth.keys.create', { tenantId: of, name: 'k', ...minted('key'), profile, ...more });
  const large = await key(tenantId, 'large');
  await key(tenantId, 'large');
  await key(other, 'batch', { expiresAt: new Date(Date.now() + 3_600_000).toISOString() });

  const authDatabase = await openAuthDatabase(database.url);
  try {
    const checks: ConfigCheck[] = [];
    const withPlans = (plans: readonly PlanConfig[]) => ({ ...auth.config, plans: [...plans] });
    const begin = (plans: readonly PlanConfig[]) => {
      const config = { current: withPlans(plans), addCheck: (check: ConfigCheck) => void checks.push(check) };
      return new ProfilesInUse(authDatabase, config as unknown as ConfigSource).onModuleInit();
    };
    const [free, pro] = auth.config.plans as [PlanConfig, PlanConfig];
    const withoutBatch = { ...free, profiles: free.profiles.filter(({ id }) => id !== 'batch') };

    const failed = await begin([withoutBatch]).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(StartError);
    expect((failed as Error).message.split('\n')).toEqual([
      expect.stringContaining(
        `profile batch of plan free is missing, but active keys use it (1 in total, e.g. of ${other}`,
      ),
      expect.stringContaining(
        `profile large of plan pro is missing, but active keys use it (2 in total, e.g. of ${tenantId}`,
      ),
    ]);

    checks.length = 0;
    const starting = begin([free, pro]);
    // A change while the process starts is checked, too.
    expect(checks).toHaveLength(1);
    await starting;
    const [check] = checks;
    // A profile without keys may be removed.
    expect(await check!(withPlans([{ ...free, profiles: free.profiles.slice(1) }, pro]))).toEqual([]);
    expect(await check!(withPlans([free]))).toEqual([expect.stringContaining('(2 in total')]);
    await auth.request('auth.keys.revoke', { tenantId, id: large.id });
    expect(await check!(withPlans([free]))).toEqual([expect.stringContaining('(1 in total')]);
    await database.query(`UPDATE auth.credential SET expires_at = now() - interval '1 s' WHERE tenant_id = $1`, [
      tenantId,
    ]);
    expect(await check!(withPlans([free]))).toEqual([]);
  } finally {
    await authDatabase.destroy();
  }
});
