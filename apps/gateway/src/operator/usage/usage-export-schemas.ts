import { Type } from '@sinclair/typebox';
import { UsageQuery } from '../../http/account/schemas';
import { NAMED_ID } from '../schemas';

const choice = <const T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], default: values[0], description });

export const UsageExportQuery = Type.Object({
  from: UsageQuery.properties.from,
  to: UsageQuery.properties.to,
  step: choice(
    ['request', 'hour', 'day'],
    '`request`: a row for each request. Otherwise one for each tenant, key, model and hour or day (UTC), which ' +
      '`from` and `to` are rounded to.',
  ),
  format: choice(['csv', 'ndjson', 'focus'], '`focus`: CSV with the columns of FOCUS 1.2.'),
  tenantId: Type.Optional(NAMED_ID.tenant),
  model: UsageQuery.properties.model,
  keyId: UsageQuery.properties.keyId,
  provider: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      pattern: '^[^\\p{Cc}\\p{Cs}]+$',
      description: 'For `focus`: the name of the provider and issuer. The default is `Tollgate`.',
    }),
  ),
});

export const UsageCsv = Type.String({ contentMediaType: 'text/csv', $id: 'UsageCsv' });
export const UsageNdjson = Type.String({ contentMediaType: 'application/x-ndjson', $id: 'UsageNdjson' });
