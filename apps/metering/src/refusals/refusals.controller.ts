import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';
import { recordRefusals } from './record';
import { newestRefused } from './refused-requests';
import { refusalSeries } from './series';

@Controller()
export class RefusalsController {
  constructor(private readonly dataSource: MeteringDataSource) {}

  @MessagePattern('metering.refusals.report')
  report(report: RequestOf<'metering.refusals.report'>): Promise<ReplyOf<'metering.refusals.report'>> {
    return recordRefusals(this.dataSource, report);
  }

  @MessagePattern('metering.refusals.series')
  series(asked: RequestOf<'metering.refusals.series'>): Promise<ReplyOf<'metering.refusals.series'>> {
    return refusalSeries(this.dataSource, asked);
  }

  @MessagePattern('metering.refusals.newest')
  newest(asked: RequestOf<'metering.refusals.newest'>): Promise<ReplyOf<'metering.refusals.newest'>> {
    return newestRefused(this.dataSource, asked);
  }
}
