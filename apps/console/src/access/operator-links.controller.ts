import { Controller } from '@nestjs/common';
import { type ReplyOf, RequestError, type RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { OperatorLinks } from './operator-links';
import { ConsoleError } from '../http/errors';
import { Operators } from './operators';
import { People } from './people';
import { OPERATOR_API, Recoveries } from './recoveries';

/** What other services ask of the console. */
@Controller()
export class OperatorLinksController {
  constructor(
    private readonly links: OperatorLinks,
    private readonly operators: Operators,
    private readonly people: People,
    private readonly recoveries: Recoveries,
  ) {}

  @MessagePattern('console.operators.invite')
  invite(request: RequestOf<'console.operators.invite'>): Promise<ReplyOf<'console.operators.invite'>> {
    return this.links.create(request);
  }

  @MessagePattern('console.operators.remove')
  remove(request: RequestOf<'console.operators.remove'>): Promise<ReplyOf<'console.operators.remove'>> {
    return this.operators.remove(request);
  }

  @MessagePattern('console.people.recover')
  async recover({ email, hash, by }: RequestOf<'console.people.recover'>): Promise<ReplyOf<'console.people.recover'>> {
    try {
      const userId = await this.people.idOf(email);
      return await this.recoveries.store(by, { userId, hash, madeBy: OPERATOR_API, tenantId: null });
    } catch (error) {
      if (error instanceof ConsoleError) throw new RequestError(error.code, error.publicMessage);
      throw error;
    }
  }
}
