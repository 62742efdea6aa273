import { Injectable } from '@nestjs/common';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { endPasskeys, endSignIns, endWaitingSignIns } from './recoveries';

/** A call of the sign-in library that may have checked a password. */
export interface PasswordCall {
  /** When it began, by `now`. */
  since: string;
  /** The session that it opened. */
  sessionId?: string | undefined;
  /** It changes the password itself. */
  changes: boolean;
}

/** Calls of the sign-in library that a new password overtakes: they may have checked the former one. */
@Injectable()
export class OvertakenCalls {
  constructor(private readonly dataSource: ConsoleDataSource) {}

  /** The time of the database, which all processes share. A text: a Date would drop the microseconds. */
  async now(): Promise<string> {
    const sql = 'SELECT clock_timestamp()::text AS now';
    return (await query<{ now: string }>(this.dataSource, sql))[0]!.now;
  }

  /**
   * Whether the person has a new password since a call began. If a link has set it, all sessions, sign-ins and passkeys
   * end again. If the person has changed it, what the call opened ends.
   */
  async end(userId: string, { since, sessionId, changes }: PasswordCall): Promise<boolean> {
    return transaction(this.dataSource, async (tx) => {
      const { reset, changed } = await newSince(tx, userId, since);
      if (reset) {
        await endSignIns(tx, userId);
        await endPasskeys(tx, userId);
        return true;
      }
      if (!changed || changes) return false;
      await endWaitingSignIns(tx, userId);
      await query(tx, 'DELETE FROM "session" WHERE "id" = $1', [sessionId ?? null]);
      return true;
    });
  }

  /**
   * Ends the links of a signed-in person just before they change the password. Error: invalid_credentials, if they have
   * a new one since.
   */
  async beforeChange(userId: string, since: string): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      // Of two changes at the same time, the second one may have checked the former password, too.
      await query(tx, 'SELECT 1 FROM "user" WHERE id = $1 FOR UPDATE', [userId]);
      const { reset, changed } = await newSince(tx, userId, since);
      if (reset || changed) throw new ConsoleError('invalid_credentials');
      await query(tx, 'DELETE FROM recovery WHERE user_id = $1', [userId]);
      await noteChange(tx, userId);
    });
  }

  /** Sign-ins that wait for their code end. A sign-in may also have begun between `beforeChange` and the change. */
  async afterChange(userId: string): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      await noteChange(tx, userId);
      await endWaitingSignIns(tx, userId);
    });
  }
}

async function noteChange(tx: EntityManager, userId: string): Promise<void> {
  await query(tx, 'UPDATE "user" SET changed_at = clock_timestamp() WHERE id = $1', [userId]);
}

/** Waits for a link that is being used. */
async function newSince(
  tx: EntityManager,
  userId: string,
  since: string,
): Promise<{ reset: boolean; changed: boolean }> {
  const [row] = await query<{ reset: boolean | null; changed: boolean | null }>(
    tx,
    `SELECT reset_at >= $2::timestamptz AS reset, changed_at >= $2::timestamptz AS changed FROM "user"
     WHERE id = $1 FOR SHARE`,
    [userId, since],
  );
  return { reset: row?.reset === true, changed: row?.changed === true };
}
