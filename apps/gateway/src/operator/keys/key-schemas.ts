import { Type } from '@sinclair/typebox';
import { MAX_APPLIED_KEYS, MAX_ROTATION_GRACE_SECONDS } from '@tollgate/contracts';
import { ExpiresAt, Models, Name, orNull, Owner, ProfileName, Tags, timestamp } from '../../http/account/fields';
import { Key } from '../../http/account/schemas';
import { answer, once, page } from '../response-schemas';

/** Inference keys, as the operator API shows and changes them. */

const exact = { additionalProperties: false };

export const KeyUpdate = Type.Object(
  {
    name: Type.Optional(Name),
    profile: Type.Optional(ProfileName),
    expiresAt: Type.Optional(ExpiresAt),
    owner: Type.Optional(Type.Union([Owner, Type.Null()], { description: 'null: nobody is named.' })),
    tags: Type.Optional(Tags),
    models: Type.Optional(Models),
  },
  { ...exact, $id: 'KeyUpdate', description: 'Absent fields stay as they are. `expiresAt` null: never.' },
);

export const OperatorKey = Type.Object(
  {
    ...Key.properties,
    profile: Type.String({ description: "A key profile of the tenant's plan." }),
    owner: orNull(Owner, 'null: nobody is named.'),
    tags: Tags,
    models: Models,
    lastUsedAt: orNull(
      timestamp('End of its last request; while it is in use, about a minute late.'),
      'null: never used.',
    ),
    rotatedAt: orNull(timestamp('When its newest secret was made.'), 'null: it has its first one.'),
    formerUntil: orNull(timestamp('Until when a former secret is accepted.'), 'null: there is none.'),
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

export const DEFAULT_ROTATION_GRACE_SECONDS = 86_400;
export const KeyRotate = Type.Object(
  {
    graceSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_ROTATION_GRACE_SECONDS,
        default: DEFAULT_ROTATION_GRACE_SECONDS,
        description: 'How long former secrets are still accepted. 0: not at all.',
      }),
    ),
  },
  { ...exact, $id: 'KeyRotate' },
);

export const WantedKey = Type.Object(
  { ...KeyUpdate.properties, name: Name },
  {
    ...exact,
    $id: 'WantedKey',
    description: 'A key by its name. Absent fields stay as they are; a new key has their defaults.',
  },
);
export const KeysApply = Type.Object(
  {
    keys: Type.Array(WantedKey, { minItems: 1, maxItems: MAX_APPLIED_KEYS }),
    revokeOthers: Type.Optional(Type.Boolean({ description: 'Also revoke active keys that the list does not name.' })),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only report what would change.' })),
  },
  { ...exact, $id: 'KeysApply' },
);

const inDryRun = 'null in a dry run.';
const appliedKey = {
  ...OperatorKey.properties,
  id: orNull(OperatorKey.properties.id, inDryRun),
  last4: orNull(OperatorKey.properties.last4, inDryRun),
};
export const KeysApplied = answer(
  Type.Object(
    {
      created: Type.Array(
        Type.Object(
          {
            ...appliedKey,
            key: orNull(
              Type.String({ pattern: '^sk-svc-' }),
              'Shown only in this answer: store it now. null in a dry run.',
            ),
          },
          exact,
        ),
      ),
      updated: Type.Array(
        Type.Object(
          {
            ...OperatorKey.properties,
            fields: Type.Array(Type.String(), { description: 'The fields that changed.' }),
            before: Type.Partial(Type.Pick(OperatorKey, ['profile', 'expiresAt', 'owner', 'tags', 'models']), {
              ...exact,
              description: 'Their former values.',
            }),
          },
          exact,
        ),
      ),
      revoked: Type.Array(Type.Object({ id: OperatorKey.properties.id, name: Type.String() }, exact)),
      unchanged: Type.Integer({ minimum: 0, description: 'Keys of the list that need no change.' }),
      others: Type.Integer({ minimum: 0, description: 'Active keys that the list does not name, and that stay.' }),
      dryRun: Type.Boolean(),
      inForce: Type.Boolean({
        description: 'false: recorded, and in force when the credential store is back. Repeat the call to know when.',
      }),
    },
    exact,
  ),
  'KeysApplied',
);
