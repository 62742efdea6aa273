import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author } from '@tollgate/contracts';
import type { FastifyRequest } from 'fastify';
import { AllowOperator, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { People } from '../../access/people';
import { queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { PeopleList } from '../answers';
import { Proofs, readProof } from '../account/proofs';
import { pageSize } from '../fields';

const Text = Type.Optional(Type.String({ maxLength: 254 }));
const readPage = queryOf(Type.Object({ limit: pageSize, after: Text, search: Text }));

/** Everybody who has an account, for operators. */
@Controller('console/api/operator/people')
export class PeopleController {
  constructor(
    private readonly people: People,
    private readonly proofs: Proofs,
  ) {}

  @Get()
  @AllowOperator('people.read')
  list(@Query() query: unknown): Promise<PeopleList> {
    return this.people.list(readPage(query));
  }

  /** The operator proves who they are. */
  @Post(':userId/erase')
  @AllowOperator('people.write')
  @HttpCode(204)
  async erase(
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const { password } = readProof(request);
    requireOther(caller, userId, 'Erase your own account under Account.');
    await this.proofs.require(caller, password, request);
    await this.people.erase(by, userId);
  }
}

/** To erase their own account, a person must prove their identity. */
export function requireOther(caller: Caller, userId: string, message: string): void {
  if (caller.userId === userId) throw new ConsoleError('forbidden', message);
}
