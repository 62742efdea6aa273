import { Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author } from '@tollgate/contracts';
import { AllowOperator, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { People } from '../../access/people';
import { Recoveries } from '../../access/recoveries';
import { queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { PeopleList, RecoveryCreated } from '../answers';
import { pageSize } from '../fields';
import { PasswordLinkTries } from '../tries';

const Text = Type.Optional(Type.String({ maxLength: 254 }));
const readPage = queryOf(Type.Object({ limit: pageSize, after: Text, search: Text }));

/** Everybody who has an account, for operators. */
@Controller('console/api/operator/people')
export class PeopleController {
  constructor(
    private readonly people: People,
    private readonly recoveries: Recoveries,
    private readonly linkTries: PasswordLinkTries,
  ) {}

  @Get()
  @AllowOperator('people.read')
  list(@Query() query: unknown): Promise<PeopleList> {
    return this.people.list(readPage(query));
  }

  @Post(':userId/recovery')
  @AllowOperator('people.write')
  recover(
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
  ): Promise<RecoveryCreated> {
    this.linkTries.take(caller.userId);
    requireOther(caller, userId, 'Change your own password under Account.');
    return this.recoveries.create(by, userId, null);
  }

  @Delete(':userId')
  @AllowOperator('people.write')
  @HttpCode(204)
  async erase(@Param('userId') userId: string, @FromCaller() caller: Caller, @ByCaller() by: Author): Promise<void> {
    requireOther(caller, userId, 'Erase your own account under Account.');
    await this.people.erase(by, userId);
  }
}

/** To erase their own account, a person must prove their identity. */
export function requireOther(caller: Caller, userId: string, message: string): void {
  if (caller.userId === userId) throw new ConsoleError('forbidden', message);
}
