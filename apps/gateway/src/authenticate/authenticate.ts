import {
  CREDENTIAL_PREFIX,
  type DefaultBudgets,
  hashCredential,
  isWellFormedCredential,
  NANOS_PER_CENT,
} from '@tollgate/contracts';
import type { Limits } from '@tollgate/admission';
import type { CredentialRecord, CredentialStore } from '@tollgate/credentials';
import { logger, type ConfigSource, type TollgateConfig } from '@tollgate/runtime';

const BEARER = /^bearer +(\S+) *$/i;

/** What a key stands for: whose it is, and what the tenant's plan and the key's profile allow. */
export interface Principal {
  tenantId: string;
  keyId: string;
  tenantLimits: Limits;
  keyLimits: Limits;
  /** Monthly budgets by default; what the operator set stands before them. */
  tenantBudgetNanos: bigint | null;
  keyBudgetNanos: bigint | null;
  /** The same in cents, for the usage event; undefined: there are none. */
  defaultBudgets: DefaultBudgets | undefined;
  /** Ids of the models that the key may use; null for all. */
  models: ReadonlySet<string> | null;
}

export type Authentication =
  | { kind: 'principal'; principal: Principal }
  /** `no_profile`: the key is good, but the configuration no longer has its plan or profile. */
  | { kind: 'refused'; reason: 'missing_api_key' | 'invalid_api_key' | 'no_profile' };

type Rights = Omit<Principal, 'tenantId' | 'keyId'>;

/**
 * Bearer value → principal. A value of the wrong form or checksum is refused without a look-up; a known one is answered
 * from memory.
 */
export class Authenticator {
  private rightsFrom: TollgateConfig;
  private rights = new Map<string, Rights | null>();
  /** What a changed configuration no longer has, as it was. */
  private readonly former = new Map<string, Rights>();

  constructor(
    private readonly credentials: CredentialStore,
    private readonly config: ConfigSource,
  ) {
    this.rightsFrom = config.current;
  }

  /** Rejects with UnavailableError when the credential must be asked for and the store does not answer. */
  async authenticate(authorization: string | undefined, nowMs: number): Promise<Authentication> {
    const value = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
    if (value === undefined)
      return { kind: 'refused', reason: isBearer(authorization) ? 'invalid_api_key' : 'missing_api_key' };
    if (!value.startsWith(CREDENTIAL_PREFIX.key) || !isWellFormedCredential('key', value))
      return { kind: 'refused', reason: 'invalid_api_key' };
    const found = this.credentials.lookup(hashCredential(value));
    // Awaited only when the store had to ask: what is in memory costs no turn of the event loop.
    const record = found instanceof Promise ? await found : found;
    if (!record || !isInForce(record, nowMs)) return { kind: 'refused', reason: 'invalid_api_key' };
    const rights = this.rightsOf(record);
    if (!rights) return { kind: 'refused', reason: 'no_profile' };
    return { kind: 'principal', principal: { tenantId: record.tenantId, keyId: record.id, ...rights } };
  }

  private rightsOf({ plan, profile }: CredentialRecord): Rights | null {
    const config = this.config.current;
    if (config !== this.rightsFrom) {
      this.keepFormer(this.rightsFrom, config);
      this.rights = new Map();
      this.rightsFrom = config;
    }
    const name = `${plan}/${profile}`;
    let rights = this.rights.get(name);
    if (rights === undefined) {
      rights = resolveRights(config, plan, profile) ?? this.former.get(name) ?? null;
      this.rights.set(name, rights);
    }
    return rights;
  }

  /**
   * A good key is not refused because a running gateway reads that its profile is gone: whether keys have it, auth
   * knows, which refuses such a configuration.
   */
  private keepFormer(before: TollgateConfig, config: TollgateConfig): void {
    for (const plan of before.plans) {
      for (const profile of plan.profiles) {
        if (resolveRights(config, plan.id, profile.id)) continue;
        this.former.set(`${plan.id}/${profile.id}`, resolveRights(before, plan.id, profile.id)!);
        logger('gateway').warn(
          { plan: plan.id, profile: profile.id },
          'the configuration no longer has this profile: keys that have it keep it as it was, until the gateway ends',
        );
      }
    }
  }
}

/** "Bearer" followed by something that is no single word: a wrong value, not a missing one. */
function isBearer(authorization: string | undefined): boolean {
  return authorization !== undefined && /^bearer +\S/i.test(authorization);
}

function isInForce(record: CredentialRecord, nowMs: number): boolean {
  return (
    record.kind === 'key' && record.revokedAtMs === null && (record.expiresAtMs === null || record.expiresAtMs > nowMs)
  );
}

function resolveRights(config: TollgateConfig, planId: string, profileId: string): Rights | null {
  const plan = config.plans.find(({ id }) => id === planId);
  const profile = profileId === '' ? plan?.profiles[0] : plan?.profiles.find(({ id }) => id === profileId);
  if (!plan || !profile) return null;
  return {
    tenantLimits: plan.limits,
    keyLimits: profile.limits,
    tenantBudgetNanos: toNanos(plan.monthlyBudgetCents),
    keyBudgetNanos: toNanos(profile.monthlyBudgetCents),
    defaultBudgets: defaultBudgets(plan.monthlyBudgetCents, profile.monthlyBudgetCents),
    models: profile.models.includes('*') ? null : new Set(profile.models),
  };
}

function toNanos(cents: number | null): bigint | null {
  return cents === null ? null : BigInt(cents) * NANOS_PER_CENT;
}

function defaultBudgets(tenantCents: number | null, keyCents: number | null): DefaultBudgets | undefined {
  if (tenantCents === null && keyCents === null) return undefined;
  return { ...(tenantCents !== null && { tenantCents }), ...(keyCents !== null && { keyCents }) };
}
