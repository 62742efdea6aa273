import { Type } from '@sinclair/typebox';
import { nextCursor, orNull, timestamp } from '../http/account/fields';
import { Key } from '../http/account/schemas';

/** The keys that the operator API shows, for its OpenAPI document. */

const exact = { additionalProperties: false };

export const OperatorKey = Type.Object(
  {
    ...Key.properties,
    lastUsedAt: orNull(timestamp('End of its last request; about a minute late.'), 'null: never used.'),
  },
  { ...exact, $id: 'OperatorKey', description: 'An inference key, without its value.' },
);

export const OperatorKeyList = Type.Object(
  { data: Type.Array(OperatorKey), nextCursor },
  { ...exact, $id: 'OperatorKeyList' },
);

export const OperatorKeyCreated = Type.Object(
  {
    data: Type.Object(
      {
        ...OperatorKey.properties,
        key: Type.String({ pattern: '^sk-svc-', description: 'Shown only in this answer.' }),
      },
      exact,
    ),
    note: Type.String({ description: 'A reminder that the value is not shown again.' }),
  },
  { ...exact, $id: 'OperatorKeyCreated' },
);
