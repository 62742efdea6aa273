import { Type } from '@sinclair/typebox';
import { OPERATOR_SCOPES, type OperatorScope } from '@tollgate/contracts';
import { ExpiresAt, idSchema, Name, nextCursor, pageQuery, timestamp } from '../../http/account/fields';
import { Token } from '../../http/account/schemas';

const exact = { additionalProperties: false };

const Scopes = Type.Array(Type.Unsafe<OperatorScope>({ type: 'string', enum: [...OPERATOR_SCOPES] }), {
  minItems: 1,
  uniqueItems: true,
  description: 'What the token may do, by area. `read` is every GET. No scope implies another.',
});

export const OperatorTokenCreate = Type.Object(
  { name: Name, scopes: Scopes, expiresAt: Type.Optional(ExpiresAt) },
  { ...exact, $id: 'OperatorTokenCreate' },
);
export const OperatorTokensQuery = pageQuery('opr');

const fields = { ...Token.properties, id: idSchema('opr', 'Token identifier.'), scopes: Scopes };
export const OperatorToken = Type.Object(fields, {
  ...exact,
  $id: 'OperatorToken',
  description: 'An operator token, without its value. No two tokens in force share a name.',
});
export const OperatorTokenList = Type.Object(
  { data: Type.Array(OperatorToken), nextCursor },
  { ...exact, $id: 'OperatorTokenList' },
);
export const OperatorTokenIssued = Type.Object(
  {
    data: Type.Object(
      { ...fields, token: Type.String({ pattern: '^tgo_', description: 'Shown only in this answer.' }) },
      exact,
    ),
    note: Type.String({ description: 'A reminder that the value is not shown again.' }),
  },
  { ...exact, $id: 'OperatorTokenIssued' },
);

export const OperatorInvitationCreate = Type.Object(
  {
    tenantId: Type.Optional(idSchema('ten', 'The operator also becomes owner of this tenant.')),
    onlyFirst: Type.Optional(
      Type.Boolean({ description: 'Refuse with `operator_exists` if the console has an operator. Default: false.' }),
    ),
  },
  { ...exact, $id: 'OperatorInvitationCreate' },
);
/** Without control characters and lone surrogates, which PostgreSQL may not even compare with an address. */
const email = (description: string) =>
  Type.String({
    minLength: 3,
    maxLength: 254,
    pattern: '^[^\\s\\p{Cc}\\p{Cs}@]+@[^\\s\\p{Cc}\\p{Cs}@]+$',
    description,
  });
export const OperatorRemoval = Type.Object(
  { email: email('The e-mail address of the operator.') },
  { ...exact, $id: 'OperatorRemoval' },
);
export const PasswordLinkCreate = Type.Object(
  { email: email('The e-mail address of the person.') },
  { ...exact, $id: 'PasswordLinkCreate' },
);
export const PasswordLink = Type.Object(
  {
    data: Type.Object(
      {
        link: Type.String({ description: 'Shown only in this answer. It works once.' }),
        expiresAt: timestamp('An hour after the answer.'),
      },
      exact,
    ),
    note: Type.String({ description: 'A reminder that the link is not shown again.' }),
  },
  { ...exact, $id: 'PasswordLink' },
);
export const OperatorInvitation = Type.Object(
  {
    data: Type.Object(
      {
        id: Type.String({ description: 'Identifier of the invitation, also in the audit log.' }),
        link: Type.String({ description: 'Shown only in this answer. It works once.' }),
        expiresAt: timestamp('Ten minutes after the answer.'),
      },
      exact,
    ),
    note: Type.String({ description: 'A reminder that the link is not shown again.' }),
  },
  { ...exact, $id: 'OperatorInvitation' },
);
