import { Type } from '@sinclair/typebox';
import { answer } from '../response-schemas';

const exact = { additionalProperties: false };
const Id = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' });

/** The parts of a configuration that depend on what the services have stored. */
export const ConfigCheck = Type.Object(
  {
    currency: Type.String({ pattern: '^[A-Z]{3}$' }),
    plans: Type.Array(
      // The limit of a body bounds both lists.
      Type.Object({ id: Id, profiles: Type.Array(Type.Object({ id: Id }, exact)) }, exact),
      { minItems: 1 },
    ),
  },
  { ...exact, $id: 'ConfigCheck' },
);
export const ConfigChecked = answer(
  Type.Object(
    { problems: Type.Array(Type.String(), { description: 'Why it would be refused. Empty: it would be accepted.' }) },
    exact,
  ),
  'ConfigChecked',
);
