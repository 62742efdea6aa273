import { Controller } from '@nestjs/common';
import type { EventDigest, EventRange, Found, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';
import { auditRejected } from '../record/rejected';
import { confirmMonth, retiredMonths } from '../retain/retired-months';
import { EventRanges } from './event-ranges';
import { RollUpAudit } from './roll-up-audit';

/** Answers what `reconcile` in billing compares with the books. */
@Controller()
export class ReconcileController {
  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly ranges: EventRanges,
    private readonly rollUps: RollUpAudit,
  ) {}

  @MessagePattern('metering.events.digest')
  digest(range: EventRange): Promise<EventDigest> {
    return this.ranges.digest(range);
  }

  @MessagePattern('metering.events.list')
  list(range: EventRange): Promise<ReplyOf<'metering.events.list'>> {
    return this.ranges.list(range);
  }

  @MessagePattern('metering.rollups.audit')
  auditRollUps(from: RequestOf<'metering.rollups.audit'>): Promise<ReplyOf<'metering.rollups.audit'>> {
    return this.rollUps.page(from);
  }

  @MessagePattern('metering.months.list')
  async months(): Promise<ReplyOf<'metering.months.list'>> {
    return { data: await retiredMonths(this.dataSource) };
  }

  @MessagePattern('metering.months.confirm')
  async confirm(totals: RequestOf<'metering.months.confirm'>): Promise<ReplyOf<'metering.months.confirm'>> {
    return { confirmed: await confirmMonth(this.dataSource, totals) };
  }

  @MessagePattern('metering.rejected.audit')
  auditRejected(): Promise<Found> {
    return auditRejected(this.dataSource);
  }
}
