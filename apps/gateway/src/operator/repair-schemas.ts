import { Type } from '@sinclair/typebox';
import { answer } from './response-schemas';
import { NAMED_ID } from './schemas';

const exact = { additionalProperties: false };

export const TenantRepairBody = Type.Object(
  { dryRun: Type.Optional(Type.Boolean({ description: 'Only tell what would change.' })) },
  { $id: 'TenantRepair' },
);

export const TenantRepairAnswer = answer(
  Type.Object(
    {
      tenantId: NAMED_ID.tenant,
      changes: Type.Array(
        Type.Object(
          {
            what: Type.Union(
              [
                'state',
                'version',
                'balanceNanos',
                'suspended',
                'settledNanos',
                'pendingNanos',
                'inFlight',
                'withdrawnNanos',
              ].map((what) => Type.Literal(what)),
            ),
            from: Type.String(),
            to: Type.String(),
          },
          exact,
        ),
        {
          description:
            'What the admission store has otherwise; empty: nothing. Budgets, and the sums of keys, are made anew as well and are not among them.',
        },
      ),
      droppedHolds: Type.Integer({ minimum: 0, description: 'Holds that nobody could read, and that are gone.' }),
      repaired: Type.Boolean({ description: 'False: it was only looked at.' }),
    },
    exact,
  ),
  'TenantRepairAnswer',
);
