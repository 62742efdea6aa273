import type { AuditAction, OperatorScope } from '@tollgate/contracts';
import type { Endpoint } from '../openapi/operation';
import type { OPERATOR_ERRORS } from './errors';

export type Code = keyof typeof OPERATOR_ERRORS;

export interface OperatorEndpoint extends Endpoint<Code> {
  /** The scope that an operator token needs. */
  scope: OperatorScope;
  /** The change that a write makes, in the audit log. */
  change?: AuditAction;
}

/** For a change that is committed before it is in force. */
export const NOT_YET =
  'After 503 `unavailable` the change may be recorded but not yet in force. Repeat the change until it succeeds.';
