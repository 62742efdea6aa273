import { Type } from '@sinclair/typebox';
import {
  MAX_COMPARED_HEADS,
  MAX_ENTRY_CENTS,
  MAX_REASON_CHARS,
  MAX_REF_CHARS,
  MAX_THRESHOLDS,
  REQUEST_ID_PATTERN,
  RESERVED_SOURCES,
  SCOPES,
  type Scope,
} from '@tollgate/contracts';
import { ExpiresAt, idSchema, Name, pageLimit, pageQuery, PLAIN_TEXT } from '../http/account/fields';

/** Objects without further fields. A misspelt field must not be ignored. */
const exact = { additionalProperties: false };

export const NAMED_ID = {
  tenant: idSchema('ten', 'Tenant identifier.'),
  key: idSchema('key', 'Key identifier.'),
  request: idSchema('req', 'Request identifier.'),
};
/** A decimal string, because JSON numbers are not precise enough. */
export const nanos = (description: string) =>
  Type.String({ pattern: '^-?[0-9]+$', description: `${description} In nanos, 10⁻⁹ of the currency's unit.` });
export const CENTS = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const PERIOD = Type.String({
  pattern: '^[0-9]{4}-(0[1-9]|1[0-2])$',
  description: 'A month, UTC.',
  examples: ['2026-10'],
});

const Amount = Type.Integer({ minimum: 1, maximum: MAX_ENTRY_CENTS, description: 'Cents.' });
const ALL = Type.Literal('all', { description: 'All available credit.' });
const Source = Type.Optional(
  Type.String({
    pattern: '^[a-z][a-z0-9_-]{0,63}$',
    not: { enum: [...RESERVED_SOURCES] },
    description: 'Where the money comes from or goes to. The default is `manual`.',
  }),
);
const Ref = Type.String({
  minLength: 1,
  maxLength: MAX_REF_CHARS,
  pattern: PLAIN_TEXT,
  description:
    'Your reference, unique per tenant and source. ' +
    'A repeat with the same input returns the first entry and the balance after it.',
});
export const Reason = Type.String({
  minLength: 1,
  maxLength: MAX_REASON_CHARS,
  pattern: '^[^\\p{Cc}\\p{Cs}]*[^\\s\\p{Cc}\\p{Cs}][^\\p{Cc}\\p{Cs}]*$',
  description: 'The reason, for the books.',
});

/**
 * Every movement of money needs a ref of the caller. A caller that lost the answer repeats the call, and without a ref
 * that would move the money twice.
 */
export const CreditAdd = Type.Object({ amountCents: Amount, source: Source, ref: Ref }, { ...exact, $id: 'CreditAdd' });
export const CreditRefund = Type.Object(
  { amountCents: Type.Union([Amount, ALL]), source: Source, ref: Ref, reason: Type.Optional(Reason) },
  { ...exact, $id: 'CreditRefund' },
);
export const CreditAdjust = Type.Object(
  {
    amountCents: Type.Union([
      Type.Integer({
        minimum: -MAX_ENTRY_CENTS,
        maximum: MAX_ENTRY_CENTS,
        not: { const: 0 },
        description: 'Cents, signed.',
      }),
      Type.Literal('all', { description: 'Takes the balance to zero: it writes off credit, or a debt.' }),
    ]),
    source: Source,
    ref: Ref,
    reason: Reason,
    allowDebt: Type.Optional(Type.Boolean({ description: 'Allows a balance below the holds, and below zero.' })),
  },
  { ...exact, $id: 'CreditAdjust' },
);

export const BudgetSet = Type.Object(
  {
    monthlyBudgetCents: Type.Unsafe<number | null | 'default'>({
      type: ['integer', 'null', 'string'],
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      pattern: '^default$',
      description:
        '`null`: no budget, even if the configuration has one. `"default"`: the budget of the configuration.',
    }),
    thresholdsPercent: Type.Optional(
      Type.Unsafe<number[] | null>({
        type: ['array', 'null'],
        minItems: 1,
        maxItems: MAX_THRESHOLDS,
        uniqueItems: true,
        items: { type: 'integer', minimum: 1, maximum: 100 },
        description: 'Whole percents, ascending. null: the thresholds of the configuration. Absent: unchanged.',
      }),
    ),
  },
  { ...exact, $id: 'BudgetSet' },
);

export const InvoicesQuery = Type.Object({
  tenantId: Type.Optional(NAMED_ID.tenant),
  period: Type.Optional(PERIOD),
  limit: pageLimit,
  after: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,15}$',
      description: 'Returns rows after this number: the `nextCursor` of the previous page.',
    }),
  ),
});
export const InvoiceClose = Type.Object(
  { period: PERIOD, tenantId: Type.Optional(NAMED_ID.tenant) },
  { ...exact, $id: 'InvoiceClose' },
);
export const InvoiceVoid = Type.Object({ reason: Reason }, { ...exact, $id: 'InvoiceVoid' });
export const RequestsQuery = pageQuery('req');
export const JournalHeadsQuery = pageQuery('ten');
export const NamedRequestsQuery = Type.Object({
  callerRequestId: Type.String({
    pattern: REQUEST_ID_PATTERN,
    description: 'The `x-request-id` that the caller chose.',
  }),
});

export const JournalHead = Type.Object(
  {
    tenantId: NAMED_ID.tenant,
    sequence: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Number of the entry in the tenant's journal.",
    }),
    hash: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The hash over this entry and all entries before it.',
    }),
  },
  { ...exact, $id: 'JournalHead' },
);
export const JournalCompare = Type.Object(
  {
    heads: Type.Array(Type.Object(JournalHead.properties, exact), {
      minItems: 1,
      maxItems: MAX_COMPARED_HEADS,
    }),
  },
  { ...exact, $id: 'JournalCompare' },
);

export const TokenCreate = Type.Object(
  {
    name: Name,
    scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...SCOPES] }), { minItems: 1, uniqueItems: true }),
    expiresAt: Type.Optional(ExpiresAt),
  },
  { ...exact, $id: 'TokenCreate' },
);
