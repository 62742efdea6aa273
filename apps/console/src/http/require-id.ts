import { type IdPrefix, isId } from '@tollgate/contracts';
import { ConsoleError } from './errors';

/**
 * Refuses an id of a path that does not have the form of its kind, before any service is asked: it may be a pasted
 * secret, and a topic keeps what it gets. Error: not_found.
 */
export function requireId(kind: IdPrefix, id: string): void {
  if (!isId(kind, id)) throw new ConsoleError('not_found');
}
