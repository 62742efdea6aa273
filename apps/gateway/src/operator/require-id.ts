import { isId } from '@tollgate/contracts';
import { ApiError } from '../http/api-error';

const NAMES = {
  ten: 'tenant',
  key: 'key',
  tok: 'token',
  opr: 'operator token',
  ent: 'ledger entry',
  rec: 'reconcile run',
} as const;

/**
 * Refuses an id of a path that does not have the form of its kind, before any service is asked: people paste secrets in
 * its place, and a topic keeps what it gets. Error: not_found.
 */
export function requireId(kind: keyof typeof NAMES, id: string): void {
  if (!isId(kind, id)) throw new ApiError('not_found', `No such ${NAMES[kind]}.`);
}
