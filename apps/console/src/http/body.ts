import type { Static, TSchema } from '@sinclair/typebox';
import { LAST_INSTANT_MS } from '@tollgate/contracts';
import Ajv, { type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import type { FastifyRequest } from 'fastify';
import { ConsoleError } from './errors';
import { isStorable } from './unstorable';

/** Every body of the console is small. */
export const MAX_BODY_BYTES = 64 * 1024;

const bodies = withFormats(new Ajv({ strict: true, allowUnionTypes: true }));
const queries = withFormats(
  new Ajv({ strict: true, allowUnionTypes: true, coerceTypes: true, useDefaults: true, removeAdditional: 'all' }),
);

/** Returns a reader of JSON bodies. Errors: unsupported_media_type, invalid_json, invalid_request. */
export function bodyOf<T extends TSchema>(schema: T): (request: FastifyRequest) => Static<T> {
  const isValid = bodies.compile<Static<T>>(schema);
  return (request) => {
    const value = readJson(request);
    if (isValid(value)) return value;
    throw new ConsoleError('invalid_request', describe(isValid.errors![0]!));
  };
}

/** Returns a reader of query strings. Unknown parameters are dropped. Error: invalid_parameter with its name. */
export function queryOf<T extends TSchema>(schema: T): (query: unknown) => Static<T> {
  const isValid = queries.compile<Static<T>>(schema);
  return (query) => {
    const value: unknown = { ...(query as object) };
    if (isValid(value)) return value;
    throw new ConsoleError('invalid_parameter', describe(isValid.errors![0]!));
  };
}

/** The format of times takes more than `Date` does: a leap second, an offset without minutes. */
function withFormats(ajv: Ajv): Ajv {
  addFormats(ajv);
  const { validate } = ajv.formats['date-time'] as { validate: (text: string) => boolean };
  return ajv.addFormat('date-time', (text) => {
    const ms = validate(text) ? Date.parse(text) : NaN;
    return ms >= 0 && ms <= LAST_INSTANT_MS;
  });
}

function readJson(request: FastifyRequest): unknown {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new ConsoleError('unsupported_media_type');
  return jsonOf(request.body as Buffer);
}

/** The value of a JSON text. Errors: invalid_json, invalid_request if it has a text that PostgreSQL does not store. */
export function jsonOf(bytes: Buffer): unknown {
  let value: unknown;
  let mayStore: boolean;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    mayStore = isStorable(value);
  } catch {
    throw new ConsoleError('invalid_json');
  }
  if (!mayStore) throw new ConsoleError('invalid_request', 'The body must not have U+0000, or half a surrogate pair.');
  return value;
}

function describe({ instancePath, keyword, params, message = 'is not valid' }: ErrorObject): string {
  const field = instancePath.slice(1).replaceAll('/', '.');
  if (keyword === 'required') return `${(params as { missingProperty: string }).missingProperty} is missing.`;
  if (keyword === 'additionalProperties')
    return `${(params as { additionalProperty: string }).additionalProperty} is not a known field.`;
  return `${field || 'The body'} ${message}.`;
}
