import { mintCredential } from '@tollgate/contracts';
import type { CredentialRecord, CredentialStore } from '@tollgate/credentials';
import type { ConfigSource, PlanConfig, TollgateConfig } from '@tollgate/runtime';
import { Authenticator } from './authenticate';

const limits = { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 };
const plan = (id: string, requestsPerMinute: number): PlanConfig => ({
  id,
  limits: { ...limits, requestsPerMinute },
  monthlyBudgetCents: null,
  profiles: [{ id: 'default', models: ['*'], limits, monthlyBudgetCents: null }],
});
const configOf = (...plans: PlanConfig[]) => ({ plans }) as unknown as TollgateConfig;

it('a valid key keeps the former rights of a plan that the configuration lacks, until the plan is back', async () => {
  const { value, hash } = mintCredential('key');
  const record = { hash, kind: 'key', id: 'key_1', tenantId: 'ten_1', plan: 'gone', profile: 'default' };
  const known = { ...record, scopes: [], expiresAtMs: null, revokedAtMs: null, version: 1 } as CredentialRecord;
  const config = { current: configOf(plan('kept', 5), plan('gone', 7)) };
  const authenticator = new Authenticator(
    { lookup: () => known } as unknown as CredentialStore,
    config as unknown as ConfigSource,
  );
  const requestsPerMinute = async () => {
    const result = await authenticator.authenticate(`Bearer ${value}`, Date.now());
    return result.kind === 'principal' ? result.principal.tenantLimits.requestsPerMinute : result.reason;
  };
  // The plan was not used before the change.
  config.current = configOf(plan('kept', 5));
  expect(await requestsPerMinute()).toBe(7);
  config.current = configOf(plan('kept', 6));
  expect(await requestsPerMinute()).toBe(7);
  config.current = configOf(plan('gone', 8));
  expect(await requestsPerMinute()).toBe(8);
  expect(
    await new Authenticator(
      { lookup: () => known } as unknown as CredentialStore,
      { current: configOf(plan('kept', 5)) } as unknown as ConfigSource,
    ).authenticate(`Bearer ${value}`, Date.now()),
  ).toEqual({ kind: 'refused', reason: 'no_profile', of: { tenantId: 'ten_1', keyId: 'key_1' } });
});

it.each<[string, Partial<CredentialRecord>, object]>([
  ['revoked', { revokedAtMs: 1 }, { of: { tenantId: 'ten_1', keyId: 'key_1' }, by: { what: 'key_revoked' } }],
  ['expired', { expiresAtMs: 1 }, { of: { tenantId: 'ten_1', keyId: 'key_1' }, by: { what: 'key_expired' } }],
  ['no key at all', { kind: 'token' }, {}],
])('a refused value that was issued tells whose it is, and why: %s', async (_, changes, told) => {
  const { value, hash } = mintCredential('key');
  const record = { hash, kind: 'key', id: 'key_1', tenantId: 'ten_1', plan: 'kept', profile: 'default' };
  const known = { ...record, scopes: [], expiresAtMs: null, revokedAtMs: null, version: 1, ...changes };
  const authenticator = new Authenticator(
    { lookup: () => known } as unknown as CredentialStore,
    { current: configOf(plan('kept', 5)) } as unknown as ConfigSource,
  );
  const refused = { kind: 'refused', reason: 'invalid_api_key', wasIssued: true };
  expect(await authenticator.authenticate(`Bearer ${value}`, Date.now())).toEqual({ ...refused, ...told });
});

it('a key with models of its own may use those that its profile allows, and no others', async () => {
  const { value, hash } = mintCredential('key');
  const record = { hash, kind: 'key', id: 'key_1', tenantId: 'ten_1', plan: 'p', profile: 'default', scopes: [] };
  const allowed = async (own: string[] | null | undefined, ofProfile: string[]) => {
    const known = {
      ...record,
      expiresAtMs: null,
      revokedAtMs: null,
      version: 1,
      ...(own !== undefined && { models: own }),
    };
    const of = plan('p', 1);
    of.profiles[0]!.models = ofProfile;
    const result = await new Authenticator(
      { lookup: () => known } as unknown as CredentialStore,
      { current: configOf(of) } as unknown as ConfigSource,
    ).authenticate(`Bearer ${value}`, Date.now());
    if (result.kind !== 'principal') throw new Error(result.reason);
    return result.principal.models === null ? null : [...result.principal.models];
  };
  expect(await allowed(['a', 'b'], ['*'])).toEqual(['a', 'b']);
  expect(await allowed(['a', 'b'], ['b', 'c'])).toEqual(['b']);
  expect(await allowed(['a'], ['c'])).toEqual([]);
  // A record of a version before has no such field.
  for (const none of [null, undefined]) {
    expect(await allowed(none, ['c'])).toEqual(['c']);
    expect(await allowed(none, ['*'])).toBeNull();
  }
});
