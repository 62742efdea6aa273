import { Type } from '@sinclair/typebox';
import { SCOPES } from '@tollgate/contracts';
import {
  ExpiresAt,
  idSchema,
  last4,
  MODEL_ID,
  Models,
  Name,
  nextCursor,
  orNull,
  Owner,
  pageQuery,
  ProfileName,
  Tags,
  timestamp,
} from './fields';

/**
 * The requests and answers that the management and the operator API share. Requests are validated with these objects,
 * and the OpenAPI documents are generated from them.
 */

const exact = { additionalProperties: false };

export const KeyCreate = Type.Object(
  {
    name: Name,
    profile: Type.Optional(Type.Union([ProfileName, Type.Null()], { description: ProfileName.description! })),
    expiresAt: Type.Optional(ExpiresAt),
    owner: Type.Optional(Owner),
    tags: Type.Optional(Tags),
    models: Type.Optional(Models),
  },
  { ...exact, $id: 'KeyCreate' },
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

export const Token = Type.Object(
  {
    id: idSchema('tok', 'Token identifier.'),
    name: Type.String(),
    last4,
    scopes: Type.Array(Type.Unsafe<string>({ type: 'string', enum: [...SCOPES] })),
    createdAt: timestamp('When it was issued.'),
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
      description:
        '`open`: the current month, or one that is not closed yet. `paid`: closed and settled from credit. ' +
        '`void`: its amount is credit again.',
    }),
    accountingNumber: orNull(Type.Integer(), 'Gapless; null while open.'),
    createdAt: timestamp('When it was issued; of an `open` month, its beginning.'),
  },
  { ...exact, $id: 'Invoice' },
);

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
        "Requests among them whose tokens we counted with the model's tokenizer, " +
        'because the model reported no usage or its answer broke off. Absent when there are none.',
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
export const KeysQuery = pageQuery('key');
export const TokensQuery = pageQuery('tok');
export const BillingQuery = pageQuery('ent');

const instant = (description: string) => Type.String({ format: 'iso8601', description, examples: ['2026-11-01'] });

/** `groupBy` is split at its commas before validation. */
const groupBy = <const Group extends string>(groups: readonly Group[], description: string) =>
  Type.Optional(
    Type.Array(Type.Unsafe<Group>({ type: 'string', enum: [...groups] }), { uniqueItems: true, description }),
  );
const GROUPS = ['model', 'key', 'day', 'hour'] as const;

export const UsageQuery = Type.Object({
  from: Type.Optional(
    instant('Start, inclusive: ISO 8601 date or timestamp, UTC. Default: the start of this calendar month.'),
  ),
  to: Type.Optional(instant('End, exclusive, after `from`: ISO 8601 date or timestamp, UTC. Default: now.')),
  groupBy: groupBy(GROUPS, 'Comma-separated.'),
  model: Type.Optional(Type.String({ pattern: MODEL_ID, description: 'Only this model.' })),
  keyId: Type.Optional(idSchema('key', 'Only this key.')),
});

export const OperatorUsageQuery = Type.Object({
  ...UsageQuery.properties,
  groupBy: groupBy(
    [...GROUPS, 'backend', 'owner', 'tag'],
    'Comma-separated. A key with several tags counts in the group of each. `backend`: a range of 32 days at most.',
  ),
});
