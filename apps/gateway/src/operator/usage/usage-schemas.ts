import { Type } from '@sinclair/typebox';
import { REFUSALS_KEPT_DAYS } from '@tollgate/contracts';
import { orNull } from '../../http/account/fields';
import { UsageAnswer, UsageGroup, UsageTotals } from '../../http/account/schemas';
import { answer, currency } from '../response-schemas';
import { nanos } from '../schemas';

/** Usage of a tenant, as an operator sees it. */

const exact = { additionalProperties: false };
const inDetail = {
  failed: Type.Integer({
    minimum: 0,
    description: 'Billed ones: the backend broke off, the credit ended, or the gateway died.',
  }),
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
      refusals: orNull(
        Type.Array(
          Type.Object({ code: Type.String(), requests: Type.Integer({ minimum: 1 }) }, { ...exact, title: 'Refusal' }),
        ),
        'Requests that were answered with this error and have no usage, the most first: refused ones (4xx), and ' +
          'those that no backend answered (5xx). They are in no total. In whole hours, of the last ' +
          `${REFUSALS_KEPT_DAYS} days of the range until now. null: with \`model\`, because they are counted without it.`,
      ),
      currency,
    },
    exact,
  ),
  'OperatorUsageAnswer',
);
