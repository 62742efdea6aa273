import { Type } from '@sinclair/typebox';
import { answer } from '../response-schemas';
import { NAMED_ID } from '../schemas';

const exact = { additionalProperties: false };

export const TenantRepairBody = Type.Object(
  { dryRun: Type.Optional(Type.Boolean({ description: 'Only report what would change.' })) },
  { ...exact, $id: 'TenantRepair' },
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
            'Differences between the admission store and the books. Empty: there are none. ' +
            'Budgets and sums of keys are also rebuilt, but not listed.',
        },
      ),
      droppedHolds: Type.Integer({ minimum: 0, description: 'Unreadable holds that were removed.' }),
      repaired: Type.Boolean({ description: 'False after a dry run.' }),
    },
    exact,
  ),
  'TenantRepairAnswer',
);
