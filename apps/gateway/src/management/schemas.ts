import { Type } from '@sinclair/typebox';
import { idSchema, last4, nextCursor } from '../http/account/fields';
import { Invoice, LedgerEntry } from '../http/account/schemas';
import { MANAGEMENT_ERRORS } from './errors';

/** The answers that only the management API has. */

const exact = { additionalProperties: false };

export const IssuedKey = Type.Object(
  {
    id: idSchema('key', 'Key identifier.'),
    name: Type.String(),
    key: Type.String({
      pattern: '^sk-svc-[0-9A-Za-z]{49}$',
      description: 'The key itself. Only this answer has it, because only its hash is stored.',
    }),
    last4,
  },
  { ...exact, $id: 'IssuedKey' },
);

export const KeyCreated = Type.Object(
  { data: IssuedKey, note: Type.String({ description: 'A reminder that the key is not shown again.' }) },
  { ...exact, $id: 'KeyCreated' },
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
