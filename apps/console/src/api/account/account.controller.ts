import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author, Page } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { FastifyRequest } from 'fastify';
import { AnySignedIn, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { Changes } from '../../access/changes';
import { People } from '../../access/people';
import { cursorParts, microsOf, timedPage } from '../../access/timed-pages';
import { ConsoleDatabase } from '../../database';
import { bodyOf, queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { SessionRow } from '../answers';
import { EmailField, exact, TimedPage } from '../fields';
import { OwnPasswordField, Proofs } from './proofs';

const readErasure = bodyOf(Type.Object({ email: EmailField, password: OwnPasswordField }, exact));
const readPage = queryOf(TimedPage);

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
    private readonly people: People,
    private readonly proofs: Proofs,
  ) {}

  /** The newest first. Without the secrets of the sessions, which the library's own list has. */
  @Get('sessions')
  @AnySignedIn()
  async sessions(@FromCaller() { userId, sessionId }: Caller, @Query() asked: unknown): Promise<Page<SessionRow>> {
    const { limit, after } = readPage(asked);
    const micros = microsOf('"createdAt"');
    const rows = await query<Session & { micros: string }>(
      this.database.dataSource,
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

  /** The person types their address, and proves who they are. */
  @Post('account/erase')
  @AnySignedIn()
  @HttpCode(204)
  async erase(@FromCaller() caller: Caller, @ByCaller() by: Author, @Req() request: FastifyRequest): Promise<void> {
    const { email, password } = readErasure(request);
    if (email.toLowerCase() !== caller.email) throw new ConsoleError('invalid_request', 'email must be your own.');
    await this.proofs.require(caller, password, request);
    await this.people.erase(by, caller.userId);
  }
}
