import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author, Page } from '@tollgate/contracts';
import type { FastifyRequest } from 'fastify';
import { AnySignedIn, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { People } from '../../access/people';
import { bodyOf, queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { SessionRow } from '../answers';
import { EmailField, exact, TimedPage } from '../fields';
import { OwnSignIns } from './own-sign-ins';
import { OwnPasswordField, Proofs } from './proofs';

const readErasure = bodyOf(Type.Object({ email: EmailField, password: OwnPasswordField }, exact));
const readPage = queryOf(TimedPage);

/** The person's own sessions and passkeys. The sign-in library adds passkeys, and changes everything else. */
@Controller('console/api')
export class AccountController {
  constructor(
    private readonly signIns: OwnSignIns,
    private readonly people: People,
    private readonly proofs: Proofs,
  ) {}

  @Get('sessions')
  @AnySignedIn()
  async sessions(@FromCaller() caller: Caller, @Query() asked: unknown): Promise<Page<SessionRow>> {
    return this.signIns.sessions(caller, readPage(asked));
  }

  @Delete('sessions/:id')
  @AnySignedIn()
  @HttpCode(204)
  async endSession(@FromCaller() { userId }: Caller, @ByCaller() by: Author, @Param('id') id: string): Promise<void> {
    await this.signIns.endSession(by, userId, id);
  }

  @Delete('passkeys/:id')
  @AnySignedIn()
  @HttpCode(204)
  async removePasskey(@FromCaller() { userId }: Caller, @ByCaller() by: Author, @Param('id') id: string) {
    await this.signIns.removePasskey(by, userId, id);
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
