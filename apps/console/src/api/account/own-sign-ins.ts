import { Injectable } from '@nestjs/common';
import type { Author, Page } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { Caller } from '../../access/allow';
import { Changes } from '../../access/changes';
import { cursorParts, microsOf, timedPage, type TimedPageQuery } from '../../access/timed-pages';
import { ConsoleDataSource } from '../../database';
import { ConsoleError } from '../../http/errors';
import type { SessionRow } from '../answers';

interface Session {
  id: string;
  address: string | null;
  browser: string | null;
  createdAt: Date;
  expiresAt: Date;
}

/** The sessions and passkeys of a person. Each end has its row in the audit log, or is not made. */
@Injectable()
export class OwnSignIns {
  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly changes: Changes,
  ) {}

  /** The newest first. Without the secrets of the sessions, which the library's own list has. */
  async sessions(
    { userId, sessionId }: Pick<Caller, 'userId' | 'sessionId'>,
    { limit, after }: TimedPageQuery,
  ): Promise<Page<SessionRow>> {
    const micros = microsOf('"createdAt"');
    const rows = await query<Session & { micros: string }>(
      this.dataSource,
      `SELECT "id", "ipAddress" AS address, "userAgent" AS browser, "createdAt", "expiresAt", ${micros} AS micros
       FROM "session"
       WHERE "userId" = $1 AND "expiresAt" > now() AND ($2::bigint IS NULL OR (${micros}, "id") < ($2::bigint, $3::text))
       ORDER BY "createdAt" DESC, "id" DESC LIMIT $4`,
      [userId, ...cursorParts(after), limit + 1],
    );
    return timedPage(rows, limit, {
      idOf: ({ id }) => id,
      shown: (row) => ({
        ...row,
        isCurrent: row.id === sessionId,
        createdAt: row.createdAt.toISOString(),
        expiresAt: row.expiresAt.toISOString(),
      }),
    });
  }

  /** Error: not_found. */
  async endSession(by: Author, userId: string, id: string): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      const [ended] = await query<Pick<Session, 'address' | 'browser' | 'createdAt'>>(
        tx,
        `DELETE FROM "session" WHERE "id" = $1 AND "userId" = $2
         RETURNING "ipAddress" AS address, "userAgent" AS browser, "createdAt"`,
        [id, userId],
      );
      if (!ended) throw new ConsoleError('not_found');
      await this.changes.record(by, { action: 'session.end', target: id, before: { ...ended } });
    });
  }

  /** Error: not_found. */
  async removePasskey(by: Author, userId: string, id: string): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      const [removed] = await query<{ passkey: string | null }>(
        tx,
        'DELETE FROM "passkey" WHERE "id" = $1 AND "userId" = $2 RETURNING "name" AS passkey',
        [id, userId],
      );
      if (!removed) throw new ConsoleError('not_found');
      await this.changes.record(by, { action: 'passkey.remove', target: userId, before: { ...removed } });
    });
  }
}
