import { Type, type TSchema } from '@sinclair/typebox';
import { SCOPES, type IdPrefix } from '@tollgate/contracts';
import { MANAGEMENT_ERRORS } from '../../management/errors';

/** The management API's request and response forms. Requests are validated with these; the OpenAPI document is written from the same objects. */

/** Letters that Postgres and people can take: no control characters, no lone surrogates. */
const PLAIN_TEXT = '^[^\\p{Cc}\\p{Cs}]*$';
const MODEL_ID = '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$';
const PROFILE_ID = '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$';
export const MAX_NAME_CHARS = 100;
export const MAX_PAGE_ROWS = 200;
export const DEFAULT_PAGE_ROWS = 100;

export const idSchema = (prefix: IdPrefix, description: string) =>
  Type.String({
    pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`,
    description,
    examples: [`${prefix}_01kd8v7e5bqgrt3m2n9x0c4hya`],
  });
export const timestamp = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-05T08:30:00.000Z'] });
export const orNull = (schema: TSchema, description: string) => Type.Union([schema, Type.Null()], { description });
const last4 = Type.String({
  minLength: 4,
  maxLength: 4,
  description: 'Last four characters of the value.',
  examples: ['x3Qa'],
});
const exact = { additionalProperties: false };

/** `name` is checked after trimming. */
export const Name = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_CHARS,
  pattern: PLAIN_TEXT,
  description:
    'A label. Surrounding space is removed. At least one character must be visible. Line breaks and characters that change the direction of text are not allowed.',
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

export const KeyCreate = Type.Object(
  { name: Name, profile: Type.Optional(ProfileName), expiresAt: Type.Optional(ExpiresAt) },
  { $id: 'KeyCreate', description: 'Other fields are ignored.' },
);

export const Key = Type.Object(
  {
    id: idSchema('key', 'Key identifier.'),
    name: Type.String({ description: 'Label given at issue.' }),
    last4,
    status: Type.Union([Type.Literal('active'), Type.Literal('revoked'), Type.Literal('expired')], {
      description: 'A key that is both revoked and expired is `revoked`.',
    }),
    createdAt: timestamp('When it was issued.'),
    expiresAt: orNull(timestamp('When it expires.'), 'null: never.'),
  },
  { ...exact, $id: 'Key', description: 'An inference key, without its value.' },
);

export const IssuedKey = Type.Object(
  {
    id: idSchema('key', 'Key identifier.'),
    name: Type.String(),
    key: Type.String({
      pattern: '^sk-svc-[0-9A-Za-z]{49}$',
      description: 'The key itself. Only this answer has it: just its hash is stored.',
    }),
    last4,
  },
  { ...exact, $id: 'IssuedKey' },
);

export const Token = Type.Object(
  {
    id: idSchema('tok', 'Token identifier.'),
    name: Type.String(),
    last4,
    scopes: Type.Array(Type.Unsafe<string>({ type: 'string', enum: [...SCOPES] })),
    createdAt: timestamp('When it was made.'),
    lastUsedAt: orNull(timestamp('Last use; advances within 10 s.'), 'null: never used.'),
    expiresAt: orNull(timestamp('When it expires.'), 'null: never.'),
    revokedAt: orNull(timestamp('When it was revoked.'), 'null: not revoked.'),
  },
  { ...exact, $id: 'Token', description: 'A management token, without its value.' },
);

export const LedgerEntry = Type.Object(
  {
    id: Type.String({ description: 'Entry identifier, for `after`.' }),
    type: Type.Union(['topup', 'usage', 'adjustment', 'refund'].map((type) => Type.Literal(type))),
    amountCents: Type.Integer({ description: 'Positive for money in, negative for a debit.' }),
    source: Type.String({ description: 'Where the money came from (`manual`, `stripe`, …); `metering` for usage.' }),
    ref: Type.String({ description: "The source's reference." }),
    createdAt: timestamp('When it was written.'),
  },
  { ...exact, $id: 'LedgerEntry' },
);

export const Invoice = Type.Object(
  {
    period: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'UTC month.', examples: ['2026-11'] }),
    amountCents: Type.Integer(),
    status: Type.Union([Type.Literal('open'), Type.Literal('paid'), Type.Literal('void')], {
      description: '`open`: the current month. `paid`: closed and settled from credit.',
    }),
    accountingNumber: orNull(Type.Integer(), 'Gapless; null while open.'),
    createdAt: timestamp('When it was opened.'),
  },
  { ...exact, $id: 'Invoice' },
);

export const nextCursor = orNull(Type.String(), 'Pass it as `after` for the next page; null at the end.');

const usageNumbers = {
  requests: Type.Integer({ minimum: 0 }),
  promptTokens: Type.Integer({ minimum: 0 }),
  completionTokens: Type.Integer({ minimum: 0 }),
  totalTokens: Type.Integer({ minimum: 0 }),
  costCents: Type.Integer({ minimum: 0, description: "Whole cents; the groups' add up exactly to the total." }),
  estimatedRequests: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        "Requests among them whose tokens were counted by us with the model's tokenizer, because the model gave no usage or its answer broke off. Absent when there are none.",
    }),
  ),
};

export const UsageTotals = Type.Object(usageNumbers, { ...exact, $id: 'UsageTotals' });
export const UsageGroup = Type.Object(
  {
    model: Type.Optional(Type.String({ description: 'Present with `groupBy` model.' })),
    key: Type.Optional(idSchema('key', 'With `groupBy` key.')),
    day: Type.Optional(
      Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'With `groupBy` day: a UTC date.' }),
    ),
    hour: Type.Optional(timestamp('With `groupBy` hour: the full hour.')),
    ...usageNumbers,
  },
  { ...exact, $id: 'UsageGroup' },
);

export const KeyList = Type.Object({ data: Type.Array(Key), nextCursor }, { ...exact, $id: 'KeyList' });
export const TokenList = Type.Object({ data: Type.Array(Token), nextCursor }, { ...exact, $id: 'TokenList' });
export const KeyCreated = Type.Object(
  { data: IssuedKey, note: Type.String({ description: 'A reminder that the key is not shown again.' }) },
  { ...exact, $id: 'KeyCreated' },
);
export const UsageAnswer = Type.Object(
  {
    data: Type.Object(
      {
        from: timestamp('Start, inclusive.'),
        to: timestamp('End, exclusive.'),
        totals: UsageTotals,
        groups: Type.Array(UsageGroup),
      },
      exact,
    ),
  },
  { ...exact, $id: 'UsageAnswer' },
);
export const BillingAnswer = Type.Object(
  {
    data: Type.Object(
      {
        balanceCents: Type.Integer({ description: "The sum of all the tenant's ledger entries at that moment." }),
        entries: Type.Array(LedgerEntry, { description: 'Newest first.' }),
        invoices: Type.Array(Invoice),
      },
      exact,
    ),
    nextCursor,
  },
  { ...exact, $id: 'BillingAnswer' },
);

export const ManagementErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.Unsafe<string>({
          type: 'string',
          enum: Object.keys(MANAGEMENT_ERRORS),
          description: 'Stable and machine-readable.',
        }),
        message: Type.String(),
      },
      exact,
    ),
  },
  { ...exact, $id: 'ManagementError' },
);

/** Rows are newest first. */
export const pageQuery = (prefix: IdPrefix) =>
  Type.Object({
    limit: Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_ROWS,
      default: DEFAULT_PAGE_ROWS,
      description: 'Maximum number of rows.',
    }),
    after: Type.Optional(idSchema(prefix, 'Rows after the one with this id: `nextCursor` of the page before.')),
  });
export const KeysQuery = pageQuery('key');
export const TokensQuery = pageQuery('tok');
export const BillingQuery = pageQuery('ent');

const instant = (description: string) => Type.String({ format: 'iso8601', description, examples: ['2026-11-01'] });

/** `groupBy` is split at its commas before validation. */
export const UsageQuery = Type.Object({
  from: Type.Optional(
    instant('Start, inclusive: ISO 8601 date or timestamp, UTC. Default: the start of this calendar month.'),
  ),
  to: Type.Optional(instant('End, exclusive: ISO 8601 date or timestamp, UTC. Default: now.')),
  groupBy: Type.Optional(
    Type.Array(
      Type.Unsafe<'model' | 'key' | 'day' | 'hour'>({ type: 'string', enum: ['model', 'key', 'day', 'hour'] }),
      { uniqueItems: true, description: 'Comma-separated.' },
    ),
  ),
  model: Type.Optional(Type.String({ pattern: MODEL_ID, description: 'Only this model.' })),
  keyId: Type.Optional(idSchema('key', 'Only this key.')),
});
