import { Controller } from '@nestjs/common';
import type { UsageEvent } from '@tollgate/contracts';
import { EventPattern } from '@tollgate/messaging/nest';
import { ChargeOutbox } from '../publish/charge-outbox';
import { UsageConsumer } from './usage-consumer';

@Controller()
export class UsageController {
  constructor(
    private readonly consumer: UsageConsumer,
    private readonly outbox: ChargeOutbox,
  ) {}

  @EventPattern('usage-events', 'metering')
  async record(batch: readonly UsageEvent[]): Promise<void> {
    await this.consumer.consume(batch);
    this.outbox.wake();
  }
}
