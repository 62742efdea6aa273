import { Type } from '@sinclair/typebox';
import { orNull } from '../http/account/fields';
import { UsageAnswer, UsageGroup, UsageTotals } from '../http/account/schemas';
import { answer, currency } from './response-schemas';
import { nanos } from './schemas';

/** Usage of a tenant, as an operator sees it. */

const exact = { additionalProperties: false };
const inDetail = {
  failed: Type.Integer({ minimum: 0, description: 'The backend broke off, the credit ended, or the gateway died.' }),
  clientClosed: Type.Integer({ minimum: 0, description: 'The client left before the end.' }),
  cachedTokens: Type.Integer({ minimum: 0, description: 'A part of the prompt tokens.' }),
  reasoningTokens: Type.Integer({ minimum: 0, description: 'A part of the completion tokens, as backends report it.' }),
  costNanos: nanos('Cost.'),
};
export const OperatorUsageTotals = Type.Object(
  { ...UsageTotals.properties, ...inDetail },
  { ...exact, $id: 'OperatorUsageTotals' },
);
export const OperatorUsageGroup = Type.Object(
  {
    ...UsageGroup.properties,
    ...inDetail,
    backend: Type.Optional(orNull(Type.String(), 'With `groupBy` backend. null: unknown.')),
    owner: Type.Optional(orNull(Type.String(), 'With `groupBy` owner, as it is now. null: nobody is named.')),
    tag: Type.Optional(orNull(Type.String(), 'With `groupBy` tag, as it is now. null: a key without tags.')),
  },
  { ...exact, $id: 'OperatorUsageGroup' },
);
export const OperatorUsageAnswer = answer(
  Type.Object(
    {
      ...UsageAnswer.properties.data.properties,
      totals: OperatorUsageTotals,
      groups: Type.Array(OperatorUsageGroup),
      currency,
    },
    exact,
  ),
  'OperatorUsageAnswer',
);
