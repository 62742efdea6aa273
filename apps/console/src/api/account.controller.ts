import { Controller, Delete, Get, HttpCode, Param } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import { AnySignedIn, ByCaller, FromCaller, type Caller } from '../access/allow';
import { Changes } from '../access/changes';
import { ConsoleDatabase } from '../database';
import { ConsoleError } from '../http/errors';
import type { SessionRow } from './answers';

interface Session {
  id: string;
  address: string | null;
  browser: string | null;
  createdAt: Date;
  expiresAt: Date;
}

/** The person's own sessions and passkeys. The sign-in library adds passkeys, and changes everything else. */
@Controller('console/api')
export class AccountController {
  constructor(
    private readonly database: ConsoleDatabase,
    private readonly changes: Changes,
  ) {}

  /** Without the secrets of the sessions, which the library's own list has. */
  @Get('sessions')
  @AnySignedIn()
  async sessions(@FromCaller() { userId, sessionId }: Caller): Promise<{ data: SessionRow[] }> {
    const rows = await query<Session>(
      this.database.dataSource,
      `SELECT "id", "ipAddress" AS address, "userAgent" AS browser, "createdAt", "expiresAt" FROM "session"
       WHERE "userId" = $1 AND "expiresAt" > now() ORDER BY "createdAt" DESC, "id"`,
      [userId],
    );
    return {
      data: rows.map((row) => ({
        ...row,
        isCurrent: row.id === sessionId,
        createdAt: row.createdAt.toISOString(),
        expiresAt: row.expiresAt.toISOString(),
      })),
    };
  }

  @Delete('sessions/:id')
  @AnySignedIn()
  @HttpCode(204)
  async endSession(@FromCaller() { userId }: Caller, @ByCaller() by: Author, @Param('id') id: string): Promise<void> {
    await transaction(this.database.dataSource, async (tx) => {
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

  @Delete('passkeys/:id')
  @AnySignedIn()
  @HttpCode(204)
  async removePasskey(
    @FromCaller() { userId }: Caller,
    @ByCaller() by: Author,
    @Param('id') id: string,
  ): Promise<void> {
    await transaction(this.database.dataSource, async (tx) => {
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
