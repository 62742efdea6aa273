import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { OperatorLinks } from './operator-links';

/** What other services ask of the console. */
@Controller()
export class OperatorLinksController {
  constructor(private readonly links: OperatorLinks) {}

  @MessagePattern('console.operators.invite')
  invite(request: RequestOf<'console.operators.invite'>): Promise<ReplyOf<'console.operators.invite'>> {
    return this.links.create(request);
  }
}
