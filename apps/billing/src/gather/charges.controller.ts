import { Controller } from '@nestjs/common';
import type { Charge } from '@tollgate/contracts';
import { EventPattern } from '@tollgate/messaging/nest';
import { failPoint } from '@tollgate/runtime';
import { AfterCommit } from '../post/after-commit';
import { ChargeGatherer } from './charge-gatherer';
import { countCharges } from '../post/metrics';

@Controller()
export class ChargesController {
  constructor(
    private readonly gatherer: ChargeGatherer,
    private readonly after: AfterCommit,
  ) {}

  @EventPattern('charges', 'billing')
  async gather(batch: readonly Charge[]): Promise<void> {
    const result = await this.gatherer.gather(batch);
    failPoint('gathered');
    countCharges(result);
    this.after.committed(result.dueInMs);
  }
}
