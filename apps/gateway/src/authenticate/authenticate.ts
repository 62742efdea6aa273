import { Injectable } from '@nestjs/common';
import {
  CREDENTIAL_PREFIX,
  type DefaultBudgets,
  hashCredential,
  isWellFormedCredential,
  NANOS_PER_CENT,
  type RefusedBy,
} from '@tollgate/contracts';
import type { Limits } from '@tollgate/admission';
import { type CredentialRecord, CredentialStore } from '@tollgate/credentials';
import { logger, ConfigSource, type TollgateConfig } from '@tollgate/runtime';

const BEARER = /^bearer +(\S+) *$/i;

/** The owner of a key, and what the plan of the tenant and the profile of the key allow. */
export interface Principal {
  tenantId: string;
  keyId: string;
  /** The id of the tenant's plan: its class in metrics. */
  plan: string;
  tenantLimits: Limits;
  keyLimits: Limits;
  /** Default monthly budgets. Budgets that the operator set override them. */
  tenantBudgetNanos: bigint | null;
  keyBudgetNanos: bigint | null;
  /** The default budgets in cents, for the usage event. Undefined: there are none. */
  defaultBudgets: DefaultBudgets | undefined;
  /** Ids of the models that the key may use; null for all. */
  models: ReadonlySet<string> | null;
  /** Whether Idempotency-Keys are honoured, and answers kept for repeats. */
  idempotency: boolean;
  /** Whether answers say what they cost. */
  usageCost: boolean;
}

export type Authentication =
  | { kind: 'principal'; principal: Principal }
  /**
   * `management_token`: the value has the prefix of a management token. `no_profile`: the key is valid, but the
   * configuration no longer has its plan or profile.
   */
  | {
      kind: 'refused';
      reason: 'missing_api_key' | 'invalid_api_key' | 'management_token' | 'no_profile';
      /** The key was revoked or has expired. Its sender knew a real key, so this is no guess. */
      wasIssued?: true;
      /** The owner of a key that was issued, and what is wrong with it. */
      of?: { readonly tenantId: string; readonly keyId: string };
      by?: RefusedBy;
    };

export type Rights = Omit<Principal, 'tenantId' | 'keyId'>;

/**
 * Turns a bearer value into a principal. A value of the wrong form or checksum is refused without a look-up. A known
 * key is answered from memory.
 */
@Injectable()
export class Authenticator {
  private rightsFrom: TollgateConfig;
  private rights = new Map<string, Rights | null>();
  /** The last rights of plans and profiles that the present configuration no longer has. */
  private readonly former = new Map<string, Rights>();

  constructor(
    private readonly credentials: CredentialStore,
    private readonly config: ConfigSource,
  ) {
    this.rightsFrom = config.current;
  }

  /** Rejects with UnavailableError when the credential is not in memory and the store does not answer. */
  async authenticate(authorization: string | undefined, nowMs: number): Promise<Authentication> {
    const value = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
    if (value === undefined)
      return { kind: 'refused', reason: isBearer(authorization) ? 'invalid_api_key' : 'missing_api_key' };
    if (value.startsWith(CREDENTIAL_PREFIX.token)) return { kind: 'refused', reason: 'management_token' };
    if (!value.startsWith(CREDENTIAL_PREFIX.key) || !isWellFormedCredential('key', value))
      return { kind: 'refused', reason: 'invalid_api_key' };
    const found = this.credentials.lookup(hashCredential(value));
    // Awaits only a look-up in the store: an answer from memory costs no turn of the event loop.
    const record = found instanceof Promise ? await found : found;
    if (!record) return { kind: 'refused', reason: 'invalid_api_key' };
    const of = { tenantId: record.tenantId, keyId: record.id };
    if (!isInForce(record, nowMs)) {
      const what = record.revokedAtMs === null ? 'key_expired' : 'key_revoked';
      return {
        kind: 'refused',
        reason: 'invalid_api_key',
        wasIssued: true,
        ...(record.kind === 'key' && { of, by: { what } }),
      };
    }
    const rights = this.rightsOf(record);
    if (!rights) return { kind: 'refused', reason: 'no_profile', of };
    if (record.models == null) return { kind: 'principal', principal: { ...of, ...rights } };
    const models = allowedBoth(record.models, rights.models);
    return { kind: 'principal', principal: { ...of, ...rights, models } };
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
   * Keeps valid keys working after a running gateway read a configuration without their profile. Auth knows which
   * profiles keys have, and refuses such a configuration.
   */
  private keepFormer(before: TollgateConfig, config: TollgateConfig): void {
    for (const plan of before.plans) {
      for (const profile of plan.profiles) {
        if (resolveRights(config, plan.id, profile.id)) continue;
        this.former.set(`${plan.id}/${profile.id}`, resolveRights(before, plan.id, profile.id)!);
        logger('gateway').warn(
          { plan: plan.id, profile: profile.id },
          'the configuration no longer has this profile: its keys keep their former rights until the gateway ends',
        );
      }
    }
  }
}

/** The models of a key that its profile allows, too. */
export function allowedBoth(own: readonly string[], ofProfile: Principal['models']): ReadonlySet<string> {
  return new Set(ofProfile === null ? own : own.filter((id) => ofProfile.has(id)));
}

/** "Bearer" followed by more than one word is an invalid key, not a missing one. */
function isBearer(authorization: string | undefined): boolean {
  return authorization !== undefined && /^bearer +\S/i.test(authorization);
}

function isInForce(record: CredentialRecord, nowMs: number): boolean {
  return (
    record.kind === 'key' && record.revokedAtMs === null && (record.expiresAtMs === null || record.expiresAtMs > nowMs)
  );
}

/** What the plan and the profile allow. Null: the configuration has no such plan or profile. */
export function resolveRights(config: TollgateConfig, planId: string, profileId: string): Rights | null {
  const plan = config.plans.find(({ id }) => id === planId);
  const profile = profileId === '' ? plan?.profiles[0] : plan?.profiles.find(({ id }) => id === profileId);
  if (!plan || !profile) return null;
  return {
    plan: plan.id,
    tenantLimits: plan.limits,
    keyLimits: profile.limits,
    tenantBudgetNanos: toNanos(plan.monthlyBudgetCents),
    keyBudgetNanos: toNanos(profile.monthlyBudgetCents),
    defaultBudgets: defaultBudgets(plan.monthlyBudgetCents, profile.monthlyBudgetCents),
    models: profile.models.includes('*') ? null : new Set(profile.models),
    idempotency: profile.idempotency ?? plan.idempotency ?? true,
    usageCost: profile.usageCost ?? false,
  };
}

function toNanos(cents: number | null): bigint | null {
  return cents === null ? null : BigInt(cents) * NANOS_PER_CENT;
}

function defaultBudgets(tenantCents: number | null, keyCents: number | null): DefaultBudgets | undefined {
  if (tenantCents === null && keyCents === null) return undefined;
  return { ...(tenantCents !== null && { tenantCents }), ...(keyCents !== null && { keyCents }) };
}
