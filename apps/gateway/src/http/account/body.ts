import type { ErrorObject } from 'ajv';
import { ApiError } from '../api-error';
import { validateName } from './names';
import { parseInstant } from '../validate';

/**
 * The body with its name trimmed: the rules for a name hold for what is left. Error: invalid_name, with what is wrong.
 */
export function trimmedName(body: Record<string, unknown>): Record<string, unknown> {
  if (typeof body['name'] !== 'string') return body;
  const name = body['name'].trim();
  const problem = name === '' ? null : validateName(name);
  if (problem !== null) throw new ApiError('invalid_name', problem);
  return { ...body, name };
}

/** Each field of a body has a code of its own, for whatever is wrong with it. */
const CODE_OF_FIELD: Readonly<Record<string, string>> = {
  name: 'invalid_name',
  profile: 'invalid_profile',
  expiresAt: 'invalid_expires_at',
  plan: 'invalid_plan',
  scopes: 'invalid_scope',
  amountCents: 'invalid_amount',
  source: 'invalid_source',
  ref: 'invalid_ref',
  reason: 'invalid_reason',
  monthlyBudgetCents: 'invalid_budget',
  thresholdsPercent: 'invalid_thresholds',
  period: 'invalid_period',
  tenantId: 'not_found',
};

/** The error for what Ajv found wrong in a body. A name that is missing or blank is `name_required`. */
export function bodyError({ instancePath, keyword, params }: ErrorObject): ApiError {
  const missing = keyword === 'required' ? (params as { missingProperty: string }).missingProperty : null;
  const field = missing ?? instancePath.split('/')[1] ?? '';
  if (field === 'name' && (missing !== null || keyword === 'minLength')) return new ApiError('name_required');
  return new ApiError(CODE_OF_FIELD[field] ?? 'invalid_json');
}

/** The checked `expiresAt` as ISO 8601 UTC; null for never. Error: invalid_expires_at when it is past. */
export function futureInstant(expiresAt: string | null | undefined): string | null {
  if (expiresAt === undefined || expiresAt === null) return null;
  const ms = parseInstant(expiresAt);
  if (ms === null || ms <= Date.now()) throw new ApiError('invalid_expires_at');
  return new Date(ms).toISOString();
}
