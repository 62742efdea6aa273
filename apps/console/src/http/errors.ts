import { MAX_KEY_BUDGETS, MAX_THRESHOLDS } from '@tollgate/contracts';
import type { ErrorTable } from '@tollgate/runtime';

/** The errors of the console's backend. A service's refusal may come with its own text. */
export const CONSOLE_ERRORS = {
  invalid_json: { status: 400, message: 'The body must be a JSON object.' },
  invalid_request: { status: 400, message: 'The request has a missing or malformed value.' },
  invalid_parameter: { status: 400, message: 'A parameter is malformed.' },
  invalid_name: { status: 400, message: 'name must have 1 to 100 characters, at least one of them visible.' },
  invalid_profile: { status: 400, message: "profile must name a key profile of the tenant's plan." },
  invalid_owner: { status: 400, message: 'owner must have 1 to 100 characters, without surrounding space.' },
  invalid_models: { status: 400, message: 'models must name models of the catalog.' },
  invalid_plan: { status: 400, message: 'plan must name a plan of tollgate.yaml.' },
  invalid_scope: { status: 400, message: 'scopes must be one or more of the listed scopes.' },
  invalid_amount: {
    status: 400,
    message:
      'The amount must be a whole number of cents from 1 to 10^12. An adjustment may also be negative, but not 0.',
  },
  invalid_budget: { status: 400, message: 'The budget must be a whole number of cents from 0 to 2^53 − 1.' },
  invalid_thresholds: {
    status: 400,
    message: `Thresholds must be 1 to ${MAX_THRESHOLDS} distinct whole percentages from 1 to 100 in ascending order.`,
  },
  invalid_expires_at: { status: 400, message: 'expiresAt must be in the future.' },
  invalid_credentials: { status: 401, message: 'The e-mail address or the password is wrong.' },
  sign_in_failed: { status: 400, message: 'The request failed. Try again.' },
  unauthenticated: { status: 401, message: 'Sign in first.' },
  forbidden: { status: 403, message: 'Your role does not allow this.' },
  sign_in_again: {
    status: 403,
    message: 'This needs a new sign-in. Sign out, sign in again, and repeat it within ten minutes.',
  },
  wrong_origin: { status: 403, message: 'Only pages of the console may do this.' },
  not_found: { status: 404, message: 'This does not exist, or you may not see it.' },
  invitation_invalid: {
    status: 404,
    message: 'This link has already been used, has expired, or has been withdrawn. Ask for a new one.',
  },
  recovery_invalid: {
    status: 404,
    message: 'This link has already been used, has expired, or has been withdrawn. Ask for a new one.',
  },
  method_not_allowed: { status: 405, message: 'This endpoint does not support this method.' },
  account_exists: { status: 409, message: 'This address already has an account. Sign in, then open the link again.' },
  last_owner: { status: 409, message: 'A tenant needs an owner. Make another member the owner first.' },
  last_operator: { status: 409, message: 'This is the last operator of the console. Invite another one first.' },
  no_password: { status: 409, message: 'This person signs in by single sign-on and has no password.' },
  mail_not_configured: { status: 409, message: 'The console sends no mail. Ask an operator or an owner for a link.' },
  key_revoked: { status: 409, message: 'A revoked key cannot be rotated. Create a new key.' },
  tenant_closed: { status: 409, message: 'The tenant is permanently closed.' },
  too_many_budgets: {
    status: 409,
    message: `At most ${MAX_KEY_BUDGETS.toLocaleString('en')} keys of a tenant can have their own budget.`,
  },
  too_many_invitations: { status: 409, message: 'The tenant has too many open invitations. Withdraw one.' },
  insufficient_credit: { status: 409, message: 'The amount exceeds the available credit.' },
  ref_conflict: {
    status: 409,
    message: 'This ref has already been used with another amount, type or reason. Use another ref for another booking.',
  },
  payload_too_large: { status: 413, message: 'The body is too large. Send a smaller one.' },
  unsupported_media_type: { status: 415, message: 'The body must be JSON.' },
  misdirected_request: {
    status: 421,
    message: 'The console is not served at this address. Ask your operator for its address.',
  },
  rate_limited: { status: 429, message: 'Too many attempts. Wait a minute.' },
  reconcile_busy: { status: 409, message: 'Too many reconcile runs are in progress. Wait until one ends.' },
  internal_error: { status: 500, message: 'Something went wrong on our side. Try again.' },
  unavailable: { status: 503, message: 'A service is temporarily unavailable. Try again shortly.' },
} as const satisfies ErrorTable;

export type ConsoleErrorCode = keyof typeof CONSOLE_ERRORS;

/** An error of the table, with its own message if that helps. */
export class ConsoleError extends Error {
  constructor(
    readonly code: ConsoleErrorCode,
    readonly publicMessage?: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(publicMessage ?? CONSOLE_ERRORS[code].message);
    this.name = 'ConsoleError';
  }
}
