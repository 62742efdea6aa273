import type { AuditQuery, AuditRow, Authored, ConsoleAction } from '../audit';
import type { DrainedBackend } from '../backends';
import type { Page, PageQuery } from '../page';
import type { KeyNames, KeyRow, PlannedProfiles, OperatorTokenRow, TenantRow, TokenRow, WantedKey } from '../resources';

/** What auth answers, in the form of `Subjects` (subjects.ts). */
export interface AuthSubjects {
  /** invalid_plan: the plan is unknown; external_id_taken. Names need not be unique. */
  'auth.tenants.create': [Authored<{ name: string; plan?: string; externalId?: string }>, TenantRow];
  /**
   * `externalId`: only the tenant with it, as a page of one row or none. `search`: only tenants whose name, id or
   * external id contains it, whatever the case of its letters from A to Z.
   */
  'auth.tenants.list': [{ externalId?: string; search?: string } & PageQuery, Page<TenantRow>];
  /** not_found */
  'auth.tenants.get': [{ tenantId: string }, TenantRow];
  /** What tenants are called, for at most 200 ids. Unknown ones are left out. invalid_parameter */
  'auth.tenants.names': [{ ids: string[] }, { data: Pick<TenantRow, 'id' | 'name'>[] }];
  /**
   * Changes the given fields. `profiles` names a profile of the new plan for profiles of the keys that it lacks.
   * not_found, tenant_closed, external_id_taken, invalid_plan, invalid_profile, profiles_missing. A new plan is in
   * force everywhere within a second of the answer. UnavailableError: the change may be committed but not in force, so
   * repeat it.
   */
  'auth.tenants.update': [
    Authored<{
      tenantId: string;
      name?: string;
      externalId?: string | null;
      plan?: string;
      profiles?: Record<string, string>;
    }>,
    TenantRow,
  ];
  /**
   * not_found, tenant_closed. Setting the same status again succeeds. Running requests end normally. New ones are
   * refused within a second of the answer. UnavailableError: the change may be committed but not in force, so repeat
   * it.
   */
  'auth.tenants.setStatus': [Authored<{ tenantId: string; status: 'active' | 'suspended' }>, TenantRow];
  /**
   * Closes a tenant for good: suspends it, and revokes all its keys and tokens. not_found. In force and repeatable like
   * auth.tenants.setStatus.
   */
  'auth.tenants.close': [Authored<{ tenantId: string }>, TenantRow];
  /**
   * Erases the personal data of a closed tenant: names, owners, tags and the external id, also in the audit logs of
   * auth and billing. Ids and books stay. not_found, tenant_not_closed. A repeat succeeds. UnavailableError: it is
   * erased, and rows of auth or of billing still have names, until they follow. Repeat it to be sure.
   */
  'auth.tenants.erase': [Authored<{ tenantId: string }>, TenantRow];
  'auth.keys.list': [{ tenantId: string } & PageQuery, Page<KeyRow>];
  /**
   * not_found (tenant), tenant_closed, invalid_profile, invalid_models. In force when answered, or once the credential
   * store is back.
   */
  'auth.keys.create': [
    Authored<{
      tenantId: string;
      name: string;
      hash: string;
      last4: string;
      profile?: string;
      expiresAt?: string;
      owner?: string;
      tags?: string[];
      models?: string[] | null;
    }>,
    KeyRow,
  ];
  /** not_found: no such key of this tenant. */
  'auth.keys.get': [{ tenantId: string; id: string }, KeyRow];
  /** A key of any tenant, for an operator. `revokedAt`: as far as gateways know. not_found */
  'auth.keys.find': [{ id: string }, KeyRow & { tenantId: string; revokedAt: string | null }];
  /**
   * What keys and their tenants are called, for at most 1,000 ids of any tenants. Unknown ones are left out.
   * invalid_parameter
   */
  'auth.keys.names': [{ ids: string[] }, { data: KeyNames[] }];
  /**
   * Changes the given fields of a key; null for no owner, no expiry and all models. not_found, tenant_closed (it was
   * erased), invalid_profile, invalid_models. In force everywhere within a second of the answer. UnavailableError: the
   * change may be committed but not in force, so repeat it.
   */
  'auth.keys.update': [
    Authored<{
      tenantId: string;
      id: string;
      name?: string;
      profile?: string;
      expiresAt?: string | null;
      owner?: string | null;
      tags?: string[];
      models?: string[] | null;
    }>,
    KeyRow,
  ];
  /**
   * Gives a key its next secret. Former ones are accepted for `graceSeconds`, from 0 to MAX_ROTATION_GRACE_SECONDS.
   * not_found, tenant_closed, key_revoked, invalid_grace. In force when it is answered. UnavailableError: it may be
   * committed, so rotate again with another secret.
   */
  'auth.keys.rotate': [
    Authored<{ tenantId: string; id: string; hash: string; last4: string; graceSeconds: number }>,
    KeyRow,
  ];
  /**
   * Makes the keys of a tenant match a list, all or none: creates and changes those that it names, and revokes others
   * with `revokeOthers`. `secrets`: one for each key of the list, in its order; new keys use theirs. Absent: only says
   * what it would do, and new keys have no id. not_found, tenant_closed, invalid_profile, invalid_models,
   * invalid_parameter (more than MAX_APPLIED_KEYS, a name twice), ambiguous_name. A message about a key begins with its
   * place: `keys.3.profile: `. `inForce` false: committed, and in force later; a repeat says when.
   */
  'auth.keys.apply': [
    Authored<{
      tenantId: string;
      keys: WantedKey[];
      revokeOthers: boolean;
      secrets?: { hash: string; last4: string }[];
    }>,
    {
      created: (Omit<KeyRow, 'id'> & { id: string | null })[];
      /** `before`: the former values of the fields. */
      updated: { row: KeyRow; fields: string[]; before: Partial<KeyRow> }[];
      revoked: { id: string; name: string }[];
      unchanged: number;
      /** Active keys that the list does not name, and that stay. */
      others: number;
      inForce: boolean;
    },
  ];
  /**
   * not_found. In force everywhere within a second of the answer. UnavailableError: the change may be committed but not
   * in force, so repeat it. Revoking again succeeds.
   */
  'auth.keys.revoke': [Authored<{ tenantId: string; id: string }>, { revokedAt: string }];
  /**
   * Moves lastUsedAt forward, never back. `recorded`: how many of the ids are keys. Malformed uses are left out. A
   * gateway sends the use of a key at most once a minute.
   */
  'auth.keys.used': [{ uses: { id: string; at: string }[] }, { recorded: number }];
  'auth.tokens.list': [{ tenantId: string } & PageQuery, Page<TokenRow>];
  /** not_found (tenant), tenant_closed, invalid_scope. Otherwise like auth.keys.create. */
  'auth.tokens.create': [
    Authored<{ tenantId: string; name: string; hash: string; last4: string; scopes: string[]; expiresAt?: string }>,
    TokenRow,
  ];
  /** Like auth.keys.revoke. */
  'auth.tokens.revoke': [Authored<{ tenantId: string; id: string }>, { revokedAt: string }];
  /** Like auth.keys.used. */
  'auth.tokens.used': [{ uses: { id: string; at: string }[] }, { recorded: number }];
  /** Operator tokens, newest first. */
  'auth.operators.list': [PageQuery, Page<OperatorTokenRow>];
  /** invalid_scope; name_taken: a token that is not revoked has this name. In force when it is answered. */
  'auth.operators.create': [
    Authored<{ name: string; hash: string; last4: string; scopes: string[]; expiresAt?: string }>,
    OperatorTokenRow,
  ];
  /** not_found. In force when it is answered. Revoking again succeeds. */
  'auth.operators.revoke': [Authored<{ id: string }>, { revokedAt: string }];
  /**
   * Finds the token that a caller of the operator API sent, and moves its lastUsedAt forward. invalid_secret: there is
   * none with this hash; token_revoked; token_expired.
   */
  'auth.operators.use': [{ hash: string }, { id: string; name: string; scopes: string[] }];
  /** A line for each profile that active keys have and these plans lack. */
  'auth.config.check': [{ plans: PlannedProfiles[] }, { problems: string[] }];
  /** The backends that get no new calls. */
  'auth.backends.drained': [Record<string, never>, { drained: DrainedBackend[] }];
  /** In force about a second after its answer. A repeat changes nothing. invalid_backend */
  'auth.backends.drain': [Authored<{ backend: string }>, DrainedBackend];
  /** The same. */
  'auth.backends.enable': [Authored<{ backend: string }>, { backend: string }];
  /** The changes that auth made, newest first. `after` is any `aud_…`. invalid_parameter */
  'auth.audit.list': [AuditQuery, Page<AuditRow>];
  /**
   * Appends a change that the console is about to make. Answered when the row is committed, so no change of the console
   * is missing in the log. A row may be there of a change that then failed. invalid_parameter: not one of
   * CONSOLE_ACTIONS.
   */
  'auth.audit.record': [
    Authored<{
      action: ConsoleAction;
      target: string;
      tenantId?: string;
      before?: Record<string, unknown>;
      after?: Record<string, unknown>;
    }>,
    { recorded: true },
  ];
  /**
   * Erases a person of the console: from the audit log, whose rows keep the id only, and as the owner of keys. Others
   * lose the address only in tenants to which the person belonged. Adds the row of it once. A repeat erases what was
   * written meanwhile. UnavailableError: there are many rows, and a repeat goes on with those that are left.
   */
  'auth.people.erase': [Authored<{ userId: string; email: string }>, { erased: true }];
}
