import { sqlState } from '@tollgate/postgres';
import { LedgerError } from './core/accounts';

/** SQLSTATE classes: data exceptions and violated constraints, including those that our triggers raise. */
const BROKEN_CLASSES = ['22', '23'];

/** Whether the code or the database found a broken rule of the ledger. A retry does not help then. */
export function isBroken(error: unknown): boolean {
  return error instanceof LedgerError || BROKEN_CLASSES.includes(sqlState(error)?.slice(0, 2) ?? '');
}
