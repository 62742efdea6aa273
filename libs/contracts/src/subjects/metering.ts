import type { BackendHour, UnbilledWork } from '../backends';
import type { BackendReport, MeteringFleet, PriceVersion } from '../fleet';
import type { RefusedRequest } from '../request-life';
import type { EventDigest, EventLine, EventRange, Found, MonthTotals, RetiredMonth } from '../reconcile';
import type { Page } from '../page';
import type { ListedRequest, RecordedEvent, ServedRequest } from '../resources';
import type {
  ExportedUsage,
  RefusalCount,
  RefusalPoint,
  RequestsQuery,
  UsageSeries,
  UsageExportQuery,
  UsageQuery,
  UsageSeriesQuery,
  UsageStep,
  UsageSummary,
} from '../usage';

/** What metering answers, in the form of `Subjects` (subjects.ts). */
export interface MeteringSubjects {
  'metering.usage.query': [UsageQuery, UsageSummary];
  /**
   * What was charged for requests that ended in `month` (`YYYY-MM`, UTC), in decimal strings of nanos: of the tenant,
   * and of its keys ascending by id after `after`, 5,000 in a page. From the rollups. For an admission store that was
   * emptied. invalid_parameter: month.
   */
  'metering.spent': [
    { tenantId: string; month: string; after?: string },
    { tenantNanos: string; keys: { keyId: string; nanos: string }[]; nextCursor: string | null },
  ];
  /** The records of at most 200 requests, in the order of the ids. Unknown ones are left out. invalid_parameter */
  'metering.usage.events': [{ ids: string[] }, { data: RecordedEvent[] }];
  /** The newest 100 requests for which callers chose this `x-request-id`, newest first. invalid_parameter */
  'metering.requests.named': [{ callerRequestId: string }, { data: RecordedEvent[] }];
  /**
   * The served requests of a tenant, newest end first. A page may be short, even empty, while `nextCursor` is not null:
   * a search among many requests then goes on in the next page. invalid_parameter: limit, after, from, to, a filter.
   */
  'metering.requests.list': [RequestsQuery, Page<ListedRequest>];
  /**
   * Usage over time, for a chart. One snapshot, so parts add up. invalid_parameter: a time, step, by or top; a range
   * longer than MAX_SERIES_DAYS; more than MAX_SERIES_POINTS points.
   */
  'metering.usage.series': [UsageSeriesQuery, UsageSeries];
  /**
   * What a gateway process refused, by hour: always the whole count so far, so repeats and late reports change nothing.
   * `source` names the process. `refused`: some of the requests, for explanations; a repeat changes nothing, and those
   * beyond MAX_REFUSED_PER_MINUTE are dropped. invalid_parameter: more than MAX_REFUSAL_COUNTS or
   * MAX_REFUSED_IN_REPORT, or a malformed one.
   */
  'metering.refusals.report': [
    { source: string; counts: RefusalCount[]; refused?: RefusedRequest[] },
    { recorded: true },
  ];
  /**
   * Refused requests of a tenant by code, ascending by time and code; the range as in metering.usage.series. Those of
   * the last seconds are on their way. invalid_parameter
   */
  'metering.refusals.series': [
    { tenantId: string; from: string; to: string; step: UsageStep; keyId?: string },
    { from: string; to: string; points: RefusalPoint[] },
  ];
  /**
   * The lives of requests by our id, or by the `x-request-id` that callers chose: the newest MAX_EXPLAINED served, and
   * as many refused ones of the last REFUSED_KEPT_DAYS. With `tenantId`, only this tenant's. invalid_parameter
   */
  'metering.requests.explain': [
    { name: string; tenantId?: string },
    { served: ServedRequest[]; refused: RefusedRequest[] },
  ];
  /** The newest MAX_EXPLAINED refused requests of a key that are kept. invalid_parameter */
  'metering.refusals.newest': [{ keyId: string }, { refused: RefusedRequest[] }];
  /** A page of usage for another system. invalid_parameter: a time, step, after, a filter, or limit. */
  'metering.usage.export': [UsageExportQuery, { data: ExportedUsage[]; nextCursor: string | null }];
  /** invalid_parameter: a limit above MAX_DIGEST_EVENTS. */
  'metering.events.digest': [EventRange, EventDigest];
  /** The events of a range, ascending by id. invalid_parameter: a limit above MAX_LISTED_EVENTS. */
  'metering.events.list': [EventRange, { data: EventLine[]; end: string | null }];
  /**
   * Compares the next part of the rollups with the events themselves, within MAX_ROLLUP_AUDIT_MS. Null at the end.
   * invalid_parameter: `after` is not one of these cursors.
   */
  'metering.rollups.audit': [{ after?: string }, Found & { nextCursor: string | null }];
  /** The months whose events may be dropped or are, oldest first. */
  'metering.months.list': [Record<string, never>, { data: RetiredMonth[] }];
  /** Billing's totals of its charges of a month. Confirmed if the month's events have the same. */
  'metering.months.confirm': [MonthTotals, { confirmed: boolean }];
  /**
   * Quarantined usage events that were not recorded later. Their requests may have been served, and are in no books.
   */
  'metering.rejected.audit': [Record<string, never>, Found];
  /**
   * Uncharged work of backends that a gateway knows of. A repeat of the same `id` counts nothing. invalid_parameter:
   * more than MAX_UNBILLED_LINES, or malformed lines.
   */
  'metering.backends.unbilled': [{ id: string; work: UnbilledWork[] }, { recorded: true }];
  /**
   * The engines' counters beside the books, for the running hour and the last `hours`, newest first. `before`: an hour,
   * for the next page. invalid_parameter: hours (1 to MAX_COMPARED_HOURS), before.
   */
  'metering.backends.compare': [{ hours: number; before?: string }, { data: BackendHour[]; nextCursor: string | null }];
  /**
   * How a gateway process sees its backends now. `source` names the process. invalid_parameter: more than
   * MAX_REPORTED_BACKENDS, or malformed states.
   */
  'metering.backends.report': [{ source: string; backends: BackendReport[] }, { recorded: true }];
  /** Usage of all tenants, and what waits. */
  'metering.fleet': [Record<string, never>, MeteringFleet];
  /** Every price that was in force while metering ran, newest first. */
  'metering.prices.list': [Record<string, never>, { data: PriceVersion[] }];
}
