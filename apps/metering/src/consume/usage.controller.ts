import { Controller, Inject } from '@nestjs/common';
import type { UsageEvent } from '@tollgate/contracts';
import { AfterCommitPublisher } from '@tollgate/messaging';
import { EventPattern, Outbox } from '@tollgate/messaging/nest';
import { traceMessages } from '@tollgate/runtime';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { UsageConsumer } from './usage-consumer';

@Controller()
export class UsageController {
  constructor(
    private readonly consumer: UsageConsumer,
    private readonly charges: AfterCommitPublisher,
    private readonly outbox: Outbox,
    @Inject(METERING_OPTIONS) private readonly options: MeteringOptions,
  ) {}

  @EventPattern('usage-events', 'metering')
  async record(batch: readonly UsageEvent[]): Promise<void> {
    const startMs = Date.now();
    await this.consumer.consume(batch, this.charges);
    this.outbox.wake();
    traceMessages(this.options.tracer, batch, { topic: 'usage-events', group: 'metering', startMs });
  }
}
