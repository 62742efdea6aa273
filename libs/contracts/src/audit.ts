import type { Page, PageQuery } from './page';

/** Changes of who may do what in the console. */
const PEOPLE_ACTIONS = [
  'operator.invite',
  'operator.add',
  'operator.remove',
  'invitation.create',
  'invitation.withdraw',
  'member.add',
  'member.update',
  'member.remove',
] as const;

/** Changes of how a person signs in to the console. */
const SIGN_IN_ACTIONS = [
  'account.create',
  'account.link',
  'password.change',
  'password.reset',
  'recovery.create',
  'totp.enable',
  'totp.disable',
  'passkey.add',
  'passkey.remove',
  'session.end',
] as const;

/** Changes that the console makes. Auth keeps their rows, because the console has no audit log of its own. */
export const CONSOLE_ACTIONS = [...PEOPLE_ACTIONS, ...SIGN_IN_ACTIONS] as const;
export type ConsoleAction = (typeof CONSOLE_ACTIONS)[number];

/**
 * The changes that the audit log has. Each write of the operator and the management API makes one of them. So does each
 * change in the console of a person's rights or of how a person signs in.
 */
export const AUDIT_ACTIONS = [
  'tenant.create',
  'tenant.suspend',
  'tenant.resume',
  'tenant.update',
  'tenant.close',
  'tenant.erase',
  'tenant.repair',
  'key.create',
  'key.update',
  'key.rotate',
  'key.revoke',
  'token.create',
  'token.revoke',
  'operator.create',
  'operator.revoke',
  ...PEOPLE_ACTIONS,
  'credit.add',
  'credit.refund',
  'credit.adjust',
  'budget.set',
  'invoice.close',
  'invoice.void',
  'reconcile.start',
  'backend.drain',
  'backend.enable',
  ...SIGN_IN_ACTIONS,
  'account.erase',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/**
 * The kinds of authors.
 * - `secret`: the operator secret.
 * - `operator`: an operator token (`opr_…`).
 * - `token`: a management token (`tok_…`) of a tenant.
 * - `person`: a person who is signed in to the console.
 * - `service`: a service, without a caller behind it.
 */
export const AUTHOR_KINDS = ['secret', 'operator', 'token', 'person', 'service'] as const;

/** The caller that asked for a change, and where it came from. Kept with the change in the audit log. */
export interface Author {
  kind: (typeof AUTHOR_KINDS)[number];
  /** Null for the operator secret and for a service. */
  id: string | null;
  /** The name of an operator token when it was used, or the e-mail address of a person; otherwise null. */
  name: string | null;
  /** The remote address of the caller. */
  address: string | null;
  requestId: string | null;
}

/** A request for a change. Without an author, a service asked for it by itself. */
export type Authored<T> = T & { by?: Author };

/** A row of the audit log: one change that was made. */
export interface AuditRow {
  /** `aud_…`; ascends with time. */
  id: string;
  /** ISO 8601 UTC, milliseconds. */
  at: string;
  by: Author;
  action: AuditAction;
  /** Null: the change is not one of a tenant. */
  tenantId: string | null;
  /** What was changed: an id, a month, or the number of an invoice. Null: the tenant. */
  target: string | null;
  /** The changed fields, without secrets and hashes. Null: there was nothing before. */
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** Rows that match all given fields. `from` inclusive, `to` exclusive, ISO 8601 UTC. */
export interface AuditQuery extends PageQuery {
  tenantId?: string;
  action?: AuditAction;
  target?: string;
  /** The id or the name of an author. */
  author?: string;
  requestId?: string;
  from?: string;
  to?: string;
}

/**
 * One page of both logs, newest first, from a page of each with the same query. Ids ascend with time across services,
 * so the newest rows of the union are among the newest of each, and the id of the last one is the cursor for both.
 */
export function mergedAudit(pages: readonly Page<AuditRow>[], limit: number): Page<AuditRow> {
  const rows = pages.flatMap(({ data }) => data).sort((a, b) => (a.id < b.id ? 1 : -1));
  const data = rows.slice(0, limit);
  const isLast = rows.length <= limit && pages.every(({ nextCursor }) => nextCursor === null);
  return { data, nextCursor: isLast ? null : data.at(-1)!.id };
}
