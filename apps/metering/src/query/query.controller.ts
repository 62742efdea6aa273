import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf, UsageQuery, UsageSummary } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';
import { explainRequests } from './explain';
import { MonthSpent } from './month-spent';
import { namedRequests, recordedEvents } from './recorded-events';
import { RequestsList } from './requests-list';
import { UsageExport } from './usage-export';
import { UsageQueries } from './usage-query';
import { UsageSeriesQueries } from './usage-series';

/** Answers what tenants and operators ask about usage and requests. */
@Controller()
export class QueryController {
  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly queries: UsageQueries,
    private readonly spending: MonthSpent,
    private readonly requests: RequestsList,
    private readonly series: UsageSeriesQueries,
    private readonly exports: UsageExport,
  ) {}

  @MessagePattern('metering.usage.query')
  usage(query: UsageQuery): Promise<UsageSummary> {
    return this.queries.query(query);
  }

  @MessagePattern('metering.spent')
  spent(request: RequestOf<'metering.spent'>): Promise<ReplyOf<'metering.spent'>> {
    return this.spending.page(request);
  }

  @MessagePattern('metering.usage.events')
  events(request: RequestOf<'metering.usage.events'>): Promise<ReplyOf<'metering.usage.events'>> {
    return recordedEvents(this.dataSource, request);
  }

  @MessagePattern('metering.requests.named')
  named(request: RequestOf<'metering.requests.named'>): Promise<ReplyOf<'metering.requests.named'>> {
    return namedRequests(this.dataSource, request);
  }

  @MessagePattern('metering.requests.explain')
  explain(request: RequestOf<'metering.requests.explain'>): Promise<ReplyOf<'metering.requests.explain'>> {
    return explainRequests(this.dataSource, request);
  }

  @MessagePattern('metering.requests.list')
  listRequests(request: RequestOf<'metering.requests.list'>): Promise<ReplyOf<'metering.requests.list'>> {
    return this.requests.page(request);
  }

  @MessagePattern('metering.usage.series')
  usageSeries(request: RequestOf<'metering.usage.series'>): Promise<ReplyOf<'metering.usage.series'>> {
    return this.series.query(request);
  }

  @MessagePattern('metering.usage.export')
  exportUsage(request: RequestOf<'metering.usage.export'>): Promise<ReplyOf<'metering.usage.export'>> {
    return this.exports.page(request);
  }
}
