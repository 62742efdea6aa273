import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { OperatorLinks } from './operator-links';
import { Operators } from './operators';

/** What other services ask of the console. */
@Controller()
export class OperatorLinksController {
  constructor(
    private readonly links: OperatorLinks,
    private readonly operators: Operators,
  ) {}

  @MessagePattern('console.operators.invite')
  invite(request: RequestOf<'console.operators.invite'>): Promise<ReplyOf<'console.operators.invite'>> {
    return this.links.create(request);
  }

  @MessagePattern('console.operators.remove')
  remove(request: RequestOf<'console.operators.remove'>): Promise<ReplyOf<'console.operators.remove'>> {
    return this.operators.remove(request);
  }
}
