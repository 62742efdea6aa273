import type { Static, TObject } from '@sinclair/typebox';
import Ajv, { type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import { ApiError } from './api-error';
import { parseInstant } from './instant';
import { schemaCheck } from './schema-check';
import { schemaMessage } from './schema-message';

const MAX_SHOWN_CHARS = 100;
/** A number as JSON writes it. Ajv also reads `0x10`, ` 5` and an empty text. */
const DECIMAL = /^-?\d{1,15}$/;

/**
 * A schema is compiled when its endpoint is first called: compiling all of them takes a fifth of the processor time of
 * a start. Bodies are validated as they are. Query values arrive as text and are coerced to the types of the schema.
 * Parameters that the schema does not name are refused before (`refuseUnknownParameters`), and removed here as well,
 * because the query becomes part of a message: a `tenantId` of the caller would name another tenant, and a pasted
 * secret would be kept.
 */
const OPTIONS = { strict: true, allowUnionTypes: true, verbose: true };
const bodies = withFormats(new Ajv(OPTIONS));
const queries = withFormats(new Ajv({ ...OPTIONS, coerceTypes: true, useDefaults: true, removeAdditional: 'all' }));

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

/** `fields`: the fields of the body. */
function unknownField({ instancePath, params }: ErrorObject, fields: readonly string[]): ApiError {
  const { additionalProperty } = params as { additionalProperty: string };
  const path = [...instancePath.split('/').slice(1), additionalProperty].join('.').slice(0, MAX_SHOWN_CHARS);
  const known = instancePath !== '' ? '' : fields.length === 0 ? ' It has none.' : ` It has: ${fields.join(', ')}.`;
  return new ApiError('unknown_field', `${JSON.stringify(path)} is not a field of this endpoint.${known}`);
}

/**
 * Returns a checker of query strings. It coerces text and fills in defaults. Error: invalid_parameter, also for a
 * parameter that the schema does not name: a misspelt filter that is ignored would return other rows.
 */
export function queryCheck<T extends TObject>(schema: T): (value: unknown) => Static<T> {
  const typeOf = (name: string) => (schema.properties[name] as { type?: unknown }).type;
  const integers = Object.keys(schema.properties).filter((name) => typeOf(name) === 'integer');
  const check = schemaCheck(
    () => queries.compile<Static<T>>(schema),
    (error) => new ApiError('invalid_parameter', describe(error)),
  );
  return (value) => {
    const query = { ...(value as Record<string, unknown>) };
    refuseUnknownParameters(query, schema);
    const repeated = Object.keys(query).find((name) => Array.isArray(query[name]) && typeOf(name) !== 'array');
    if (repeated !== undefined) throw new ApiError('invalid_parameter', `${repeated} must be given only once.`);
    for (const name of integers) {
      const text = query[name];
      if (typeof text === 'string' && !DECIMAL.test(text))
        throw new ApiError('invalid_parameter', `${name} must be an integer.`);
    }
    return check(query);
  };
}

/** @param schema of the query; absent: the endpoint takes no parameters. Error: invalid_parameter. */
export function refuseUnknownParameters(query: unknown, schema?: TObject): void {
  const known = Object.keys(schema?.properties ?? {});
  const unknown = Object.keys(query as object).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const shown = JSON.stringify(unknown.slice(0, MAX_SHOWN_CHARS));
  const takes = known.length === 0 ? 'It takes none.' : `It takes: ${known.join(', ')}.`;
  throw new ApiError('invalid_parameter', `${shown} is not a parameter of this endpoint. ${takes}`);
}

/** Describes an error of Ajv in one line: `limit must be at most 200.` */
export function describe(error: ErrorObject): string {
  const where = error.instancePath.slice(1).replaceAll('/', '.');
  if (error.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string };
    return `${[...(where ? [where] : []), missingProperty].join('.')} is required.`;
  }
  // The caller wrote a list with commas, so an index into it says little.
  const list = error.keyword === 'enum' ? /^(.+)\.\d+$/.exec(where)?.[1] : undefined;
  return `${list ? `${list}: each` : where || 'The value'} ${schemaMessage(error)}.`;
}

function withFormats(ajv: Ajv): Ajv {
  addFormats(ajv);
  ajv.addFormat('iso8601', (text: string) => parseInstant(text) !== null);
  return ajv;
}
