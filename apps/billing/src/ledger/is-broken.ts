import { sqlState } from '@tollgate/postgres';
import { LedgerError } from './core/accounts';

/** SQLSTATE classes: data exceptions, and violated constraints, those that our triggers assert too. */
const BROKEN_CLASSES = ['22', '23'];

/** A rule of the ledger is broken, found by the code or by the database: trying the same again does not help. */
export function isBroken(error: unknown): boolean {
  return error instanceof LedgerError || BROKEN_CLASSES.includes(sqlState(error)?.slice(0, 2) ?? '');
}
