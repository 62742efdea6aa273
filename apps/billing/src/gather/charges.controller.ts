import { Controller, Inject } from '@nestjs/common';
import type { Charge } from '@tollgate/contracts';
import { AfterCommitPublisher } from '@tollgate/messaging';
import { EventPattern } from '@tollgate/messaging/nest';
import { failPoint, traceMessages } from '@tollgate/runtime';
import { AfterCommit } from '../post/after-commit';
import { ChargeGatherer } from './charge-gatherer';
import { BILLING_OPTIONS, type ServiceOptions } from '../options';
import { countCharges } from '../post/metrics';
import { PostingTraces } from '../post/posting-traces';

@Controller()
export class ChargesController {
  constructor(
    private readonly gatherer: ChargeGatherer,
    private readonly publisher: AfterCommitPublisher,
    private readonly after: AfterCommit,
    private readonly postings: PostingTraces,
    @Inject(BILLING_OPTIONS) private readonly options: Pick<ServiceOptions, 'tracer'>,
  ) {}

  @EventPattern('charges', 'billing')
  async gather(batch: readonly Charge[]): Promise<void> {
    const startMs = Date.now();
    const result = await this.gatherer.gather(batch, this.publisher);
    failPoint('gathered');
    countCharges(result);
    this.after.committed(result.dueInMs);
    traceMessages(this.options.tracer, batch, { topic: 'charges', group: 'billing', startMs });
    this.postings.gathered(batch);
  }
}
