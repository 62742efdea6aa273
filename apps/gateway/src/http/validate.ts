import type { Static, TObject, TSchema } from '@sinclair/typebox';
import Ajv, { type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import { ApiError } from './api-error';
import { schemaCheck } from './schema-check';
import { schemaMessage } from './schema-message';

const MAX_SHOWN_CHARS = 100;
const FIRST_INSTANT_MS = 0;
const LAST_INSTANT_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const ISO_DATE = /^\d{4}-\d{2}-\d{2}$/;
const ISO_TIMESTAMP = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$/i;

/**
 * A schema is compiled when its endpoint is first called: compiling all of them takes a fifth of the processor time of a
 * start. Bodies are validated as they are. Query values arrive as text and are coerced to the types of the schema. Parameters
 * that the schema does not name are removed, because the query becomes part of a message: a `tenantId` of the caller
 * would name another tenant, and a pasted secret would be kept.
 */
const bodies = withFormats(new Ajv({ strict: true, allowUnionTypes: true }));
const queries = withFormats(
  new Ajv({ strict: true, allowUnionTypes: true, coerceTypes: true, useDefaults: true, removeAdditional: 'all' }),
);

/**
 * Epoch milliseconds of an ISO 8601 date (midnight UTC) or timestamp (UTC if it has no offset). Null for any other
 * text, for a day that does not exist, and outside 1970–9999.
 */
export function parseInstant(text: string): number | null {
  const timestamp = ISO_TIMESTAMP.exec(text);
  const day = timestamp ? timestamp[1]! : text;
  if (!ISO_DATE.test(day)) return null;
  const midnight = new Date(`${day}T00:00:00.000Z`);
  // Date turns 30 February into a day of March.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== day) return null;
  const ms = timestamp ? Date.parse(timestamp[4] ? text.toUpperCase() : `${text.toUpperCase()}Z`) : midnight.getTime();
  return ms >= FIRST_INSTANT_MS && ms <= LAST_INSTANT_MS ? ms : null;
}

/**
 * Returns a checker of bodies. It returns the typed value, or throws `toError` of the first error. Error: unknown_field
 * for a field that the schema does not name. A misspelt field that is ignored would grant more than was asked for.
 */
export function bodyCheck<T extends TObject>(
  schema: T,
  toError: (error: ErrorObject) => ApiError,
): (value: unknown) => Static<T> {
  if (schema.additionalProperties !== false) throw new Error(`the schema ${schema.$id} must refuse unknown fields`);
  const fields = Object.keys(schema.properties);
  return schemaCheck(
    () => bodies.compile<Static<T>>(schema),
    (error) => (error.keyword === 'additionalProperties' ? unknownField(error, fields) : toError(error)),
  );
}

/** `fields`: those of the body. */
function unknownField({ instancePath, params }: ErrorObject, fields: readonly string[]): ApiError {
  const { additionalProperty } = params as { additionalProperty: string };
  const path = [...instancePath.split('/').slice(1), additionalProperty].join('.').slice(0, MAX_SHOWN_CHARS);
  const known = instancePath !== '' ? '' : fields.length === 0 ? ' It has none.' : ` It has: ${fields.join(', ')}.`;
  return new ApiError('unknown_field', `${JSON.stringify(path)} is not a field of this endpoint.${known}`);
}

/** Returns a checker of query strings. It coerces text and fills in defaults. Error: invalid_parameter. */
export function queryCheck<T extends TSchema>(schema: T): (value: unknown) => Static<T> {
  const check = schemaCheck(
    () => queries.compile<Static<T>>(schema),
    (error) => new ApiError('invalid_parameter', describe(error)),
  );
  return (value) => check({ ...(value as object) });
}

/** Describes an error of Ajv in one line: `limit must be at most 200.` */
export function describe(error: ErrorObject): string {
  const where = error.instancePath.slice(1).replaceAll('/', '.');
  // The caller wrote a list with commas, so an index into it says little.
  const list = error.keyword === 'enum' ? /^(.+)\.\d+$/.exec(where)?.[1] : undefined;
  return `${list ? `${list}: each` : where || 'The value'} ${schemaMessage(error)}.`;
}

function withFormats(ajv: Ajv): Ajv {
  addFormats(ajv);
  ajv.addFormat('iso8601', (text: string) => parseInstant(text) !== null);
  return ajv;
}
