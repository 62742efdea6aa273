import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';
import { compareBackends } from './compare';
import { meteringFleet, priceVersions, recordReport } from './fleet';
import { recordUnbilled } from './unbilled';

@Controller()
export class BackendsController {
  constructor(private readonly dataSource: MeteringDataSource) {}

  @MessagePattern('metering.backends.unbilled')
  unbilled(report: RequestOf<'metering.backends.unbilled'>): Promise<ReplyOf<'metering.backends.unbilled'>> {
    return recordUnbilled(this.dataSource, report);
  }

  @MessagePattern('metering.backends.compare')
  compare(request: RequestOf<'metering.backends.compare'>): Promise<ReplyOf<'metering.backends.compare'>> {
    return compareBackends(this.dataSource, request);
  }

  @MessagePattern('metering.backends.report')
  report(report: RequestOf<'metering.backends.report'>): Promise<ReplyOf<'metering.backends.report'>> {
    return recordReport(this.dataSource, report);
  }

  @MessagePattern('metering.fleet')
  fleet(): Promise<ReplyOf<'metering.fleet'>> {
    return meteringFleet(this.dataSource);
  }

  @MessagePattern('metering.prices.list')
  prices(): Promise<ReplyOf<'metering.prices.list'>> {
    return priceVersions(this.dataSource);
  }
}
