import { MAX_KEY_BUDGETS, MAX_ROTATION_GRACE_SECONDS, MAX_THRESHOLDS, RESERVED_SOURCES } from '@tollgate/contracts';
import type { ErrorTable } from '@tollgate/runtime';
import { ACCOUNT_ERRORS } from '../http/account/errors';

/** Every error of the operator API: those shared with the management API, and its own. */
export const OPERATOR_ERRORS = {
  ...ACCOUNT_ERRORS,
  invalid_backend: { status: 400, message: 'backend must be a backend name: the origin and base path of its URL.' },
  invalid_plan: { status: 400, message: 'plan must name a plan of tollgate.yaml.' },
  invalid_email: { status: 400, message: 'email must be an e-mail address.' },
  invalid_external_id: {
    status: 400,
    message:
      'externalId must have 1 to 128 characters from A-Z, a-z, 0-9 and "._:/@-", and begin with a letter or digit.',
  },
  invalid_grace: {
    status: 400,
    message:
      'graceSeconds must be a whole number from 0 to ' +
      `${MAX_ROTATION_GRACE_SECONDS.toLocaleString('en')} (30 days).`,
  },
  invalid_keys: { status: 400, message: 'keys must be a list of 1 to 500 keys with distinct names.' },
  invalid_scope: { status: 400, message: 'scopes must be a list of one or more distinct scopes.' },
  invalid_amount: {
    status: 400,
    message:
      'amountCents must be a whole number of cents from 1 to 10^12. An adjustment may also be negative, but not 0.',
  },
  invalid_budget: {
    status: 400,
    message: 'monthlyBudgetCents must be a whole number of cents from 0 to 2^53 − 1, null for no budget, or "default".',
  },
  invalid_thresholds: {
    status: 400,
    message:
      `thresholdsPercent must be null or a list of 1 to ${MAX_THRESHOLDS} distinct whole numbers from 1 to 100 ` +
      'in ascending order.',
  },
  invalid_source: {
    status: 400,
    message:
      'source must begin with a letter and have 1 to 64 characters from a-z, 0-9, "-" and "_". ' +
      `${new Intl.ListFormat('en-GB').format(RESERVED_SOURCES.map((source) => `"${source}"`))} are reserved.`,
  },
  invalid_ref: { status: 400, message: 'ref must be a string of 1 to 200 characters without control characters.' },
  invalid_reason: {
    status: 400,
    message: 'reason must be a string of 1 to 500 characters without control characters.',
  },
  invalid_period: { status: 400, message: 'period must be a past month in the form YYYY-MM (UTC).' },
  missing_credential: {
    status: 401,
    message: 'The request has no operator secret or token. Send it as "Authorization: Bearer …".',
  },
  invalid_secret: { status: 401, message: 'The operator secret or token is not valid. Check it.' },
  token_revoked: { status: 401, message: 'The operator token has been revoked. Create a new one.' },
  token_expired: { status: 401, message: 'The operator token has expired. Create a new one.' },
  insufficient_scope: {
    status: 403,
    message: 'The operator token does not have the scope that this endpoint requires.',
  },
  too_many_attempts: {
    status: 429,
    message:
      'Too many requests from this address had a wrong operator secret. ' +
      'Retry after the time in the Retry-After header.',
  },
  misdirected_request: {
    status: 421,
    message:
      'This Host is not allowed. Use the IP address or localhost, or add the name to TOLLGATE_OPERATOR_ALLOWED_HOSTS.',
  },
  name_taken: { status: 409, message: 'Another active operator token has this name. Choose another name.' },
  operator_exists: { status: 409, message: 'The console already has an operator.' },
  no_password: { status: 409, message: 'This person signs in by single sign-on and has no password.' },
  last_operator: { status: 409, message: 'This is the last operator of the console. Invite another one first.' },
  external_id_taken: { status: 409, message: 'Another tenant has this externalId. Choose another one.' },
  key_revoked: { status: 409, message: 'A revoked key cannot be rotated. Create a new key.' },
  ambiguous_name: {
    status: 409,
    message: 'A name in the list belongs to several keys of this tenant. Rename or revoke all but one.',
  },
  tenant_closed: { status: 409, message: 'The tenant is permanently closed.' },
  tenant_not_closed: {
    status: 409,
    message: 'Only the data of a closed tenant can be erased. Close the tenant first.',
  },
  profiles_missing: {
    status: 409,
    message: "The plan lacks profiles that the tenant's keys use. Name another one for each in profiles.",
  },
  ref_conflict: {
    status: 409,
    message:
      'This ref has already been used with another amount, type or reason. Send another ref for another booking.',
  },
  too_many_budgets: {
    status: 409,
    message: `At most ${MAX_KEY_BUDGETS.toLocaleString('en')} keys of a tenant can have their own budget.`,
  },
  insufficient_credit: { status: 409, message: 'The amount exceeds the available credit.' },
  reconcile_busy: { status: 409, message: 'Too many reconcile runs are in progress. Wait until one ends.' },
} as const satisfies ErrorTable;
