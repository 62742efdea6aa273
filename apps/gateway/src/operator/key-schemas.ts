import { Type } from '@sinclair/typebox';
import { ExpiresAt, Name, orNull, Owner, ProfileName, Tags, timestamp } from '../http/account/fields';
import { Key } from '../http/account/schemas';
import { answer, once, page } from './response-schemas';

/** Inference keys, as the operator API shows and changes them. */

const exact = { additionalProperties: false };

export const KeyUpdate = Type.Object(
  {
    name: Type.Optional(Name),
    profile: Type.Optional(ProfileName),
    expiresAt: Type.Optional(ExpiresAt),
    owner: Type.Optional(Type.Union([Owner, Type.Null()], { description: 'null: nobody is named.' })),
    tags: Type.Optional(Tags),
  },
  { ...exact, $id: 'KeyUpdate', description: 'Absent fields stay as they are. `expiresAt` null: never.' },
);

export const OperatorKey = Type.Object(
  {
    ...Key.properties,
    profile: Type.String({ description: "A key profile of the tenant's plan." }),
    owner: orNull(Owner, 'null: nobody is named.'),
    tags: Tags,
    lastUsedAt: orNull(timestamp('End of its last request; about a minute late.'), 'null: never used.'),
  },
  { ...exact, $id: 'OperatorKey', description: 'An inference key, without its value.' },
);
export const OperatorKeyList = page(OperatorKey, 'OperatorKeyList');
export const OperatorKeyAnswer = answer(OperatorKey, 'OperatorKeyAnswer');
export const OperatorKeyCreated = Type.Object(
  {
    data: Type.Object(
      {
        ...OperatorKey.properties,
        key: Type.String({ pattern: '^sk-svc-', description: 'Shown only in this answer.' }),
      },
      exact,
    ),
    note: once,
  },
  { ...exact, $id: 'OperatorKeyCreated' },
);
