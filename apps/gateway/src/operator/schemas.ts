import { Type } from '@sinclair/typebox';
import { SCOPES, type Scope } from '@tollgate/contracts';
import { ExpiresAt, Name, pageQuery } from '../management/schemas';

/** What billing takes at once. */
export const MAX_TOPUP_CENTS = 1_000_000_000_000;
export const MAX_REF_CHARS = 200;

const PLAIN_TEXT = '^[^\\p{Cc}\\p{Cs}]*$';

export const TenantCreate = Type.Object({
  name: Name,
  plan: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' })),
});
export const TenantsQuery = pageQuery('ten');

export const CreditAdd = Type.Object({
  amountCents: Type.Integer({ minimum: 1, maximum: MAX_TOPUP_CENTS }),
  source: Type.Optional(Type.Literal('manual')),
  ref: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_REF_CHARS, pattern: PLAIN_TEXT })),
});

export const TokenCreate = Type.Object({
  name: Name,
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...SCOPES] }), { minItems: 1, uniqueItems: true }),
  expiresAt: Type.Optional(ExpiresAt),
});
