import type { ErrorTable } from '../management/envelope';
import { MANAGEMENT_ERRORS } from '../management/errors';

const { name_required, invalid_name, invalid_profile, invalid_expires_at, invalid_json, invalid_parameter } =
  MANAGEMENT_ERRORS;
const { not_found, method_not_allowed, payload_too_large, unsupported_media_type, internal_error, unavailable } =
  MANAGEMENT_ERRORS;

/** Every error that the operator API answers with: the management API's where they mean the same, and its own. */
export const OPERATOR_ERRORS = {
  invalid_json,
  name_required,
  invalid_name,
  invalid_profile,
  invalid_expires_at,
  invalid_parameter,
  invalid_plan: { status: 400, message: 'plan must name a plan of tollgate.yaml.' },
  invalid_scope: { status: 400, message: 'scopes must be a list of at least one scope, each named once.' },
  invalid_amount: {
    status: 400,
    message: 'amountCents must be a whole number of cents: from 1 to 10^12; of an adjustment also negative, and not 0.',
  },
  invalid_budget: {
    status: 400,
    message: 'monthlyBudgetCents must be a whole number of cents from 0, null for none, or "default".',
  },
  invalid_thresholds: {
    status: 400,
    message: 'thresholdsPercent must be 1 to 10 whole numbers from 1 to 100, ascending, each once; or null.',
  },
  invalid_source: {
    status: 400,
    message:
      'source must be 1 to 64 of a-z, 0-9, "-" and "_", begin with a letter, and not be "metering" or "invoice".',
  },
  invalid_ref: { status: 400, message: 'ref must be a string of 1 to 200 characters, without control characters.' },
  invalid_reason: {
    status: 400,
    message: 'reason must be a string of 1 to 500 characters, without control characters.',
  },
  invalid_period: { status: 400, message: 'period must be a month that is over, YYYY-MM (UTC).' },
  missing_credential: { status: 401, message: 'Send the operator secret: Authorization: Bearer …' },
  invalid_secret: { status: 401, message: 'The operator secret is not right.' },
  too_many_attempts: {
    status: 429,
    message: 'Too many wrong operator secrets came from this address: wait as long as Retry-After says.',
  },
  misdirected_request: {
    status: 421,
    message:
      'This Host is not known here: use the address or localhost, or add the name to TOLLGATE_OPERATOR_ALLOWED_HOSTS.',
  },
  not_found,
  method_not_allowed,
  ref_conflict: { status: 409, message: 'This ref was used with another amount, type or reason.' },
  too_many_budgets: { status: 409, message: 'At most 10,000 keys of a tenant can have a budget of their own.' },
  insufficient_credit: { status: 409, message: 'The credit that is neither spent nor held is less than that.' },
  reconcile_busy: { status: 409, message: 'Too many runs of reconcile are going on: wait for them.' },
  payload_too_large,
  unsupported_media_type,
  internal_error,
  unavailable,
} as const satisfies ErrorTable;
