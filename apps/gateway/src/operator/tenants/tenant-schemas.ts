import { Type } from '@sinclair/typebox';
import { Name, orNull, pageQuery, ProfileName, timestamp } from '../../http/account/fields';
import { answer, page } from '../response-schemas';
import { NAMED_ID } from '../schemas';

/** Tenants, as the operator API shows and changes them. */

const exact = { additionalProperties: false };

const Plan = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$',
  description: 'A plan of tollgate.yaml.',
  examples: ['default'],
});
const ExternalId = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$',
  description: 'Your own id of the tenant, such as its number in another system. Unique.',
  examples: ['crm-4711'],
});

export const TenantCreate = Type.Object(
  {
    name: Name,
    plan: Type.Optional({ ...Plan, description: 'A plan of tollgate.yaml. The default is the first one.' }),
    externalId: Type.Optional(ExternalId),
  },
  { ...exact, $id: 'TenantCreate' },
);

export const TenantUpdate = Type.Object(
  {
    name: Type.Optional(Name),
    externalId: Type.Optional(Type.Union([ExternalId, Type.Null()], { description: 'null: none.' })),
    plan: Type.Optional(Plan),
    profiles: Type.Optional(
      Type.Record(Type.String({ pattern: ProfileName.pattern! }), ProfileName, {
        ...exact,
        maxProperties: 100,
        description:
          'For a new plan: the next profile for keys with this profile. Keys of other profiles keep theirs, which ' +
          'the new plan must have.',
        examples: [{ batch: 'default' }],
      }),
    ),
  },
  { ...exact, $id: 'TenantUpdate', description: 'Absent fields stay as they are.' },
);

export const TenantsQuery = Type.Object({
  ...pageQuery('ten').properties,
  externalId: Type.Optional({ ...ExternalId, description: 'Only the tenant with this external id.' }),
});

export const Tenant = Type.Object(
  {
    id: NAMED_ID.tenant,
    name: Type.String({ description: 'A label. Not unique.' }),
    externalId: orNull(ExternalId, 'null: none.'),
    plan: Type.String({ description: 'A plan of tollgate.yaml.' }),
    status: Type.Union(
      ['active', 'suspended', 'closed'].map((status) => Type.Literal(status)),
      { description: '`closed` is final.' },
    ),
    createdAt: timestamp('When it was created.'),
    closedAt: orNull(timestamp('When it was closed.'), 'null: not closed.'),
    erasedAt: orNull(timestamp('When its personal data was erased.'), 'null: not erased.'),
  },
  { ...exact, $id: 'Tenant' },
);
export const TenantAnswer = answer(Tenant, 'TenantAnswer');
export const TenantList = page(Tenant, 'TenantList');
