import { Type, type TSchema } from '@sinclair/typebox';
import {
  DEFAULT_PAGE_ROWS,
  idPattern,
  KEY_TAG_FORM,
  MAX_KEY_MODELS,
  MAX_KEY_TAGS,
  MAX_NAME_CHARS,
  MAX_PAGE_ROWS,
  type IdPrefix,
} from '@tollgate/contracts';

/** The fields that the schemas of the account APIs are made of. */

/** Text without control characters and lone surrogates, which PostgreSQL can store. */
export const PLAIN_TEXT = '^[^\\p{Cc}\\p{Cs}]*$';
export const MODEL_ID = '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$';
const PROFILE_ID = '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$';

export const idSchema = (prefix: IdPrefix, description: string) =>
  Type.String({
    pattern: idPattern(prefix),
    description,
    examples: [`${prefix}_01kd8v7e5bqgrt3m2n9x0c4hya`],
  });
export const timestamp = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-05T08:30:00.000Z'] });
export const orNull = (schema: TSchema, description: string) => Type.Union([schema, Type.Null()], { description });
export const last4 = Type.String({
  minLength: 4,
  maxLength: 4,
  description: 'Last four characters of the value.',
  examples: ['x3Qa'],
});
/** `name` is checked after trimming. */
export const Name = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_CHARS,
  pattern: PLAIN_TEXT,
  description:
    'A label. Surrounding space is removed. At least one character must be visible. ' +
    'Line breaks and characters that change the direction of text are not allowed.',
  examples: ['backend'],
});
export const ProfileName = Type.String({
  pattern: PROFILE_ID,
  description: "A key profile of the tenant's plan: limits, catalog and monthly budget. The plan's first when absent.",
  examples: ['default'],
});
export const ExpiresAt = Type.Union([Type.String({ format: 'iso8601' }), Type.Null()], {
  description:
    'When it expires: an ISO 8601 timestamp in the future, UTC unless it has an offset. Absent or null: never.',
  examples: ['2027-01-01T00:00:00.000Z'],
});

export const Owner = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_CHARS,
  pattern: '^[^\\s\\p{Cc}\\p{Cf}\\p{Cs}]([^\\p{C}\\p{Zl}\\p{Zp}]*[^\\s\\p{Cc}\\p{Cf}\\p{Cs}])?$',
  description: 'Who uses the key, in your own words.',
  examples: ['team-search'],
});
export const Tags = Type.Array(Type.String({ pattern: KEY_TAG_FORM }), {
  maxItems: MAX_KEY_TAGS,
  uniqueItems: true,
  description: 'Your own groups of keys.',
  examples: [['batch', 'team:search']],
});
export const Models = Type.Union(
  [
    Type.Array(Type.String({ pattern: MODEL_ID }), { minItems: 1, maxItems: MAX_KEY_MODELS, uniqueItems: true }),
    Type.Null(),
  ],
  {
    description: 'Ids of the only models that the key may use, of those of its profile. Absent or null: all of them.',
    examples: [['sim-small']],
  },
);

export const nextCursor = orNull(Type.String(), 'Pass it as `after` for the next page; null at the end.');

export const pageLimit = Type.Integer({
  minimum: 1,
  maximum: MAX_PAGE_ROWS,
  default: DEFAULT_PAGE_ROWS,
  description: 'Maximum number of rows.',
});

/** Rows are newest first. */
export const pageQuery = (prefix: IdPrefix) =>
  Type.Object({
    limit: pageLimit,
    after: Type.Optional(idSchema(prefix, 'Rows after the one with this id: `nextCursor` of the page before.')),
  });
