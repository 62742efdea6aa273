import { Controller } from '@nestjs/common';
import type { EventDigest, EventRange, Found, ReplyOf, RequestOf, UsageQuery, UsageSummary } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { MeteringDataSource } from '../database';
import { auditRejected } from '../record/rejected';
import { confirmMonth, retiredMonths } from '../record/retired-months';
import { EventRanges } from './event-ranges';
import { explainRequests } from './explain';
import { MonthSpent } from './month-spent';
import { namedRequests, recordedEvents } from './recorded-events';
import { RequestsList } from './requests-list';
import { RollUpAudit } from './roll-up-audit';
import { UsageExport } from './usage-export';
import { UsageQueries } from './usage-query';
import { UsageSeriesQueries } from './usage-series';

@Controller()
export class QueryController {
  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly queries: UsageQueries,
    private readonly spending: MonthSpent,
    private readonly ranges: EventRanges,
    private readonly rollUps: RollUpAudit,
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
