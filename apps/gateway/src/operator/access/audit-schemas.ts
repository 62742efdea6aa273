import { Type } from '@sinclair/typebox';
import { AUDIT_ACTIONS, AUTHOR_KINDS, type AuditAction } from '@tollgate/contracts';
import { idSchema, nextCursor, orNull, pageQuery, timestamp } from '../../http/account/fields';
import { NAMED_ID } from '../schemas';

const exact = { additionalProperties: false };
const MAX_FILTER_CHARS = 100;

const Action = Type.Unsafe<AuditAction>({ type: 'string', enum: [...AUDIT_ACTIONS], description: 'What was done.' });
const filter = (description: string) =>
  Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_FILTER_CHARS, pattern: '^[^\\p{Cc}\\p{Cs}]+$', description }),
  );
const instant = (description: string) =>
  Type.Optional(Type.String({ format: 'iso8601', description, examples: ['2026-11-01'] }));
const filters = {
  tenantId: Type.Optional(NAMED_ID.tenant),
  action: Type.Optional(Action),
  target: filter('What was changed: the id of a key, a token or an entry, a month, or the number of an invoice.'),
  author: filter('The id of an author, or the name of an operator token.'),
  requestId: filter('The `x-request-id` of the answer.'),
  from: instant('Start, inclusive: ISO 8601 date or timestamp, UTC.'),
  to: instant('End, exclusive: ISO 8601 date or timestamp, UTC.'),
};

export const AuditPageQuery = Type.Object({ ...filters, ...pageQuery('aud').properties });
export const AuditExportQuery = Type.Object(filters);

const fields = (description: string) => orNull(Type.Record(Type.String(), Type.Unknown()), description);
export const AuditChange = Type.Object(
  {
    id: idSchema('aud', 'Identifier of the row; ascends with time.'),
    at: timestamp('When it was done.'),
    by: Type.Object(
      {
        kind: Type.Unsafe<string>({
          type: 'string',
          enum: [...AUTHOR_KINDS],
          description:
            '`secret`: the operator secret. `operator`: an operator token. `token`: a management token. ' +
            '`person`: a person in the console. `service`: a service by itself.',
        }),
        id: orNull(Type.String(), 'The id of the token or the person. null: there is none.'),
        name: orNull(Type.String(), 'The name of the operator token, or the e-mail address of the person.'),
        address: orNull(Type.String(), 'The remote address of the caller.'),
        requestId: orNull(Type.String(), 'The `x-request-id` of the answer.'),
      },
      exact,
    ),
    action: Action,
    tenantId: orNull(NAMED_ID.tenant, 'null: not of one tenant.'),
    target: orNull(Type.String(), 'What was changed. null: the tenant.'),
    before: fields('The changed fields before. null: there was nothing.'),
    after: fields('The changed fields after it. Never a secret or a hash.'),
  },
  { ...exact, $id: 'AuditChange' },
);
export const AuditPage = Type.Object({ data: Type.Array(AuditChange), nextCursor }, { ...exact, $id: 'AuditPage' });
export const AuditCsv = Type.String({ contentMediaType: 'text/csv', $id: 'AuditCsv' });
