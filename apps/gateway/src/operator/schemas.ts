import { Type } from '@sinclair/typebox';
import { SCOPES, type Scope } from '@tollgate/contracts';
import { DEFAULT_PAGE_ROWS, ExpiresAt, idSchema, MAX_PAGE_ROWS, Name, pageQuery } from '../management/schemas';

/** What billing takes at once. */
export const MAX_ENTRY_CENTS = 1_000_000_000_000;
export const MAX_REF_CHARS = 200;
const MAX_REASON_CHARS = 500;

const PLAIN_TEXT = '^[^\\p{Cc}\\p{Cs}]*$';

export const TenantCreate = Type.Object({
  name: Name,
  plan: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' })),
});
export const TenantsQuery = pageQuery('ten');

const Amount = Type.Integer({ minimum: 1, maximum: MAX_ENTRY_CENTS });
const Source = Type.Optional(Type.String({ pattern: '^(?!(metering|invoice)$)[a-z][a-z0-9_-]{0,63}$' }));
const Ref = Type.String({ minLength: 1, maxLength: MAX_REF_CHARS, pattern: PLAIN_TEXT });
export const Reason = Type.String({
  minLength: 1,
  maxLength: MAX_REASON_CHARS,
  pattern: '^(?=.*\\S)[^\\p{Cc}\\p{Cs}]*$',
});

export const CreditAdd = Type.Object({ amountCents: Amount, source: Source, ref: Type.Optional(Ref) });
/** Money out is never sent without the caller's own ref: a repeat would pay twice. */
export const CreditRefund = Type.Object({
  amountCents: Amount,
  source: Source,
  ref: Ref,
  reason: Type.Optional(Reason),
});
export const CreditAdjust = Type.Object({
  amountCents: Type.Integer({ minimum: -MAX_ENTRY_CENTS, maximum: MAX_ENTRY_CENTS, not: { const: 0 } }),
  source: Source,
  ref: Ref,
  reason: Reason,
  allowDebt: Type.Optional(Type.Boolean()),
});

const MAX_THRESHOLDS = 10;
/** `null`: no budget, whatever the configuration says. `"default"`: what the configuration says. */
export const BudgetSet = Type.Object({
  monthlyBudgetCents: Type.Unsafe<number | null | 'default'>({
    type: ['integer', 'null', 'string'],
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    pattern: '^default$',
  }),
  /** Whole percents, ascending; null: those of the configuration. Absent: as they are. */
  thresholdsPercent: Type.Optional(
    Type.Unsafe<number[] | null>({
      type: ['array', 'null'],
      minItems: 1,
      maxItems: MAX_THRESHOLDS,
      uniqueItems: true,
      items: { type: 'integer', minimum: 1, maximum: 100 },
    }),
  ),
});
const Period = Type.String({ pattern: '^[0-9]{4}-(0[1-9]|1[0-2])$' });
const PageLimit = Type.Integer({ minimum: 1, maximum: MAX_PAGE_ROWS, default: DEFAULT_PAGE_ROWS });
const TenantId = idSchema('ten', 'Tenant identifier.');

export const InvoicesQuery = Type.Object({
  tenantId: Type.Optional(TenantId),
  period: Type.Optional(Period),
  limit: PageLimit,
  /** A number. */
  after: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$' })),
});
export const InvoiceClose = Type.Object({ period: Period, tenantId: Type.Optional(TenantId) });
export const InvoiceVoid = Type.Object({ reason: Reason });
export const RequestsQuery = pageQuery('req');

export const TokenCreate = Type.Object({
  name: Name,
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...SCOPES] }), { minItems: 1, uniqueItems: true }),
  expiresAt: Type.Optional(ExpiresAt),
});
