import { Type } from '@sinclair/typebox';
import { validateName } from '@tollgate/contracts';
import type { ErrorObject } from 'ajv';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../api-error';
import { readJsonObject } from '../json-body';
import { parseInstant } from '../instant';
import { bodyCheck, describe } from '../validate';
import { ACCOUNT_ERRORS } from './errors';

/**
 * The body with its name trimmed. The rules for names apply to the trimmed name. Error: invalid_name, with the reason.
 */
export function trimmedName(body: Record<string, unknown>): Record<string, unknown> {
  if (typeof body['name'] !== 'string') return body;
  const name = body['name'].trim();
  const problem = name === '' ? null : validateName(name);
  if (problem !== null) throw new ApiError('invalid_name', problem);
  return { ...body, name };
}

/** The error code of each field of a body, whatever is wrong with the field. */
const CODE_OF_FIELD: Readonly<Record<string, string>> = {
  name: 'invalid_name',
  profile: 'invalid_profile',
  expiresAt: 'invalid_expires_at',
  owner: 'invalid_owner',
  tags: 'invalid_tags',
  models: 'invalid_models',
  plan: 'invalid_plan',
  backend: 'invalid_backend',
  externalId: 'invalid_external_id',
  profiles: 'invalid_profile',
  scopes: 'invalid_scope',
  amountCents: 'invalid_amount',
  source: 'invalid_source',
  ref: 'invalid_ref',
  reason: 'invalid_reason',
  monthlyBudgetCents: 'invalid_budget',
  thresholdsPercent: 'invalid_thresholds',
  period: 'invalid_period',
  graceSeconds: 'invalid_grace',
  keys: 'invalid_keys',
  email: 'invalid_email',
};

/**
 * Turns an error of Ajv in a body into an ApiError. A missing or blank name is `name_required`. A field without a code
 * of its own is `invalid_json`, with what is wrong.
 */
export function bodyError(error: ErrorObject): ApiError {
  const { instancePath, keyword, params } = error;
  const missing = keyword === 'required' ? (params as { missingProperty: string }).missingProperty : null;
  const [first = '', index, inside] = instancePath.split('/').slice(1);
  if (first === 'keys' && index !== undefined) return listError(index, missing ?? inside ?? '');
  const field = missing ?? first;
  if (field === 'name' && (missing !== null || keyword === 'minLength')) return new ApiError('name_required');
  if (field === 'tenantId') return new ApiError('not_found', 'No such tenant.');
  const code = CODE_OF_FIELD[field];
  if (code === undefined) return new ApiError('invalid_json', describe(error));
  // It names the allowed values, such as the scopes.
  return new ApiError(code, keyword === 'enum' ? describe(error) : undefined);
}

/** An error in a list of keys: the code of the field, and where it is. */
function listError(index: string, field: string): ApiError {
  const code = CODE_OF_FIELD[field] ?? 'invalid_keys';
  return new ApiError(code, `keys.${index}${field && `.${field}`}: ${fieldMessage(code)}`);
}

/** What is wrong with a field, by its code. */
export const fieldMessage = (code: string): string =>
  Object.hasOwn(ACCOUNT_ERRORS, code)
    ? ACCOUNT_ERRORS[code as keyof typeof ACCOUNT_ERRORS].message
    : 'It must be a key with a name.';

/** The checked `expiresAt` as ISO 8601 UTC. Null: never. Error: invalid_expires_at when it is in the past. */
export function futureInstant(expiresAt: string | null | undefined): string | null {
  if (expiresAt === undefined || expiresAt === null) return null;
  const ms = parseInstant(expiresAt);
  if (ms === null || ms <= Date.now()) throw new ApiError('invalid_expires_at');
  return new Date(ms).toISOString();
}

const checkNothing = bodyCheck(Type.Object({}, { additionalProperties: false }), bodyError);

/**
 * For an endpoint without fields: refuses a body that has some. Errors: the errors of readJsonObject, unknown_field.
 */
export function refuseFields(request: FastifyRequest): void {
  checkNothing(readJsonObject(request));
}
