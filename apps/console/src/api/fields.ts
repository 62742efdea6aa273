import { Type } from '@sinclair/typebox';
import {
  idPattern,
  KEY_TAG_FORM,
  MAX_KEY_MODELS,
  MAX_KEY_TAGS,
  MAX_NAME_CHARS,
  MAX_PAGE_ROWS,
  REQUEST_ID_PATTERN,
  SCOPES,
  validateName,
  type IdPrefix,
} from '@tollgate/contracts';
import { TENANT_ROLES } from '../access/roles';
import { TIMED_CURSOR_FORM } from '../access/timed-pages';
import { ConsoleError } from '../http/errors';
import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '../sign-in/better-auth';

const DEFAULT_PAGE_ROWS = 50;

export const exact = { additionalProperties: false };
export const NameField = Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS });
/** Case does not distinguish people. */
export const EmailField = Type.String({ format: 'email', maxLength: 254 });
/** The secret of a link. */
export const SecretField = Type.String({ minLength: 43, maxLength: 43, pattern: '^[A-Za-z0-9_-]+$' });
export const NewPasswordField = Type.String({ minLength: MIN_PASSWORD_CHARS, maxLength: MAX_PASSWORD_CHARS });
export const RoleField = Type.Unsafe<(typeof TENANT_ROLES)[number]>({ type: 'string', enum: [...TENANT_ROLES] });
export const ScopesField = Type.Array(Type.Unsafe<string>({ type: 'string', enum: [...SCOPES] }), {
  minItems: 1,
  uniqueItems: true,
});
export const ExpiresAtField = Type.Union([Type.String({ format: 'date-time' }), Type.Null()]);
const MonthField = Type.String({ pattern: '^\\d{4}-(0[1-9]|1[0-2])$' });

export const ModelField = Type.String({ minLength: 1, maxLength: 128 });
export const KeyIdField = Type.String({ pattern: idPattern('key') });
/** An `x-request-id` that a caller chose. */
export const CallerRequestIdField = Type.String({ pattern: REQUEST_ID_PATTERN });
export const ProfileField = Type.String({ minLength: 1, maxLength: 100 });
/** Null: nobody is named. */
export const OwnerField = Type.Union([NameField, Type.Null()]);
export const TagsField = Type.Array(Type.String({ pattern: KEY_TAG_FORM }), {
  maxItems: MAX_KEY_TAGS,
  uniqueItems: true,
});
/** The only models of a key; null: all of its profile. */
export const ModelsField = Type.Union([
  Type.Array(ModelField, { minItems: 1, maxItems: MAX_KEY_MODELS, uniqueItems: true }),
  Type.Null(),
]);
export const pageSize = Type.Integer({ minimum: 1, maximum: MAX_PAGE_ROWS, default: DEFAULT_PAGE_ROWS });

export const pageOf = (prefix: IdPrefix) =>
  Type.Object({
    limit: pageSize,
    after: Type.Optional(Type.String({ pattern: idPattern(prefix) })),
  });

/** A page of a list in the order of time. */
export const TimedPage = Type.Object({
  limit: pageSize,
  after: Type.Optional(Type.String({ pattern: TIMED_CURSOR_FORM })),
});

/** Invoices, newest number first. `after`: a number. */
export const InvoicePage = Type.Object({
  limit: pageSize,
  after: Type.Optional(Type.String({ pattern: '^[1-9]\\d{0,15}$' })),
  tenantId: Type.Optional(Type.String({ pattern: idPattern('ten') })),
  period: Type.Optional(MonthField),
});

/** The name without surrounding space. Error: invalid_name, with the reason. */
export function checkedName(given: string): string {
  const name = given.trim();
  const problem = name === '' ? 'name must have at least one visible character.' : validateName(name);
  if (problem !== null) throw new ConsoleError('invalid_name', problem);
  return name;
}

/** Who uses a key, by the rules for names. Null: nobody is named. Error: invalid_owner, with the reason. */
export function checkedOwner(given: string | null): string | null {
  if (given === null) return null;
  const owner = given.trim();
  const problem = validateName(owner);
  if (problem !== null) throw new ConsoleError('invalid_owner', problem.replace(/^name/, 'owner'));
  return owner;
}

/** An instant in the future as ISO 8601 UTC; null: never. Error: invalid_expires_at. */
export function futureInstant(given: string | null | undefined): string | null {
  if (given === undefined || given === null) return null;
  const ms = Date.parse(given);
  if (Number.isNaN(ms) || ms <= Date.now()) throw new ConsoleError('invalid_expires_at');
  return new Date(ms).toISOString();
}

/** A query whose times are ISO 8601 UTC: PostgreSQL does not read every offset that `Date` does. */
export function inUtc<Query extends { from?: string; to?: string }>(query: Query): Query {
  const { from, to } = query;
  const utc = (time: string) => new Date(time).toISOString();
  return { ...query, ...(from !== undefined && { from: utc(from) }), ...(to !== undefined && { to: utc(to) }) };
}
