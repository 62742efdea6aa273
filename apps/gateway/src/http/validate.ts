import type { Static, TSchema } from '@sinclair/typebox';
import Ajv, { type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import { ApiError } from './api-error';
import { schemaCheck } from './schema-check';
import { schemaMessage } from './schema-message';

const FIRST_INSTANT_MS = 0;
const LAST_INSTANT_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const ISO_DATE = /^\d{4}-\d{2}-\d{2}$/;
const ISO_TIMESTAMP = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$/i;

/**
 * Bodies are taken as they are; query values arrive as text and become what the schema says. Of a query nothing is left
 * but what its schema names: it becomes part of a message, in which a `tenantId` of the caller's own would be another
 * tenant, and a pasted secret would be kept.
 */
const bodies = withFormats(new Ajv({ strict: true, allowUnionTypes: true }));
const queries = withFormats(
  new Ajv({ strict: true, allowUnionTypes: true, coerceTypes: true, useDefaults: true, removeAdditional: 'all' }),
);

/**
 * Epoch milliseconds of an ISO 8601 date (midnight UTC) or timestamp (UTC where it names no offset); null when it is
 * none, names a day that no calendar has, or lies outside 1970–9999.
 */
export function parseInstant(text: string): number | null {
  const timestamp = ISO_TIMESTAMP.exec(text);
  const day = timestamp ? timestamp[1]! : text;
  if (!ISO_DATE.test(day)) return null;
  const midnight = new Date(`${day}T00:00:00.000Z`);
  // Date rolls 30 February over into March; it is no date.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== day) return null;
  const ms = timestamp ? Date.parse(timestamp[4] ? text.toUpperCase() : `${text.toUpperCase()}Z`) : midnight.getTime();
  return ms >= FIRST_INSTANT_MS && ms <= LAST_INSTANT_MS ? ms : null;
}

/** A checker of bodies: returns the value typed, or throws what `toError` makes of the first thing wrong. */
export function bodyCheck<T extends TSchema>(
  schema: T,
  toError: (error: ErrorObject) => ApiError,
): (value: unknown) => Static<T> {
  return schemaCheck(bodies.compile<Static<T>>(schema), toError);
}

/** A checker of query strings: text is coerced, defaults are filled in; anything wrong is `invalid_parameter`. */
export function queryCheck<T extends TSchema>(schema: T): (value: unknown) => Static<T> {
  const check = schemaCheck(
    queries.compile<Static<T>>(schema),
    (error) => new ApiError('invalid_parameter', describe(error)),
  );
  return (value) => check({ ...(value as object) });
}

/** What Ajv found, in one line: `limit must be <= 200.` */
export function describe(error: ErrorObject): string {
  const where = error.instancePath.slice(1).replaceAll('/', '.');
  const allowed =
    error.keyword === 'enum' ? `: ${(error.params as { allowedValues: unknown[] }).allowedValues.join(', ')}` : '';
  return `${where || 'The value'} ${schemaMessage(error)}${allowed}.`;
}

function withFormats(ajv: Ajv): Ajv {
  addFormats(ajv);
  ajv.addFormat('iso8601', (text: string) => parseInstant(text) !== null);
  return ajv;
}
