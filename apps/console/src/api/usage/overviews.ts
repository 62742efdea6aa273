import { Injectable } from '@nestjs/common';
import type { UsageSeries } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { Overview, UsageTotals } from '../answers';

const DAY_MS = 24 * 60 * 60_000;
const OVERVIEW_DAYS = 30;
/** The number of colours that can be told apart in a chart. All further series are one. */
const SERIES = 8;

/** What a tenant has, and its last 30 days beside the 30 days before. */
@Injectable()
export class Overviews {
  constructor(private readonly services: ServiceClient) {}

  async of(tenantId: string): Promise<Overview> {
    // Whole days, so that the bars of the chart are days. Whole minutes, so that a repeat within a minute asks for the
    // same range.
    const to = Math.ceil(Date.now() / 60_000) * 60_000;
    const from = Math.floor(Date.now() / DAY_MS) * DAY_MS - (OVERVIEW_DAYS - 1) * DAY_MS;
    const range = (start: number, end: number) => ({
      tenantId,
      from: new Date(start).toISOString(),
      to: new Date(end).toISOString(),
    });
    const before = range(from - (to - from), from);
    const [credit, usage, earlier, refused] = await Promise.all([
      this.services.request('billing.credit.state', { tenantId }),
      this.services.request('metering.usage.series', { ...range(from, to), step: 'day', by: 'model', top: SERIES }),
      this.services.request('metering.usage.series', { ...before, step: 'all' }),
      this.services.request('metering.refusals.series', { ...range(from, to), step: 'all' }),
    ]);
    return {
      credit,
      usage: { ...usage, totals: totalsOf(usage) },
      before: totalsOf(earlier),
      refusals: refused.points
        .map(({ code, requests }) => ({ code, requests }))
        .sort((one, other) => other.requests - one.requests),
    };
  }
}

export function totalsOf({ points }: UsageSeries): UsageTotals {
  const sum = (field: Exclude<keyof UsageTotals, 'costNanos'>) =>
    points.reduce((total, point) => total + point[field], 0);
  return {
    requests: sum('requests'),
    failed: sum('failed'),
    clientClosed: sum('clientClosed'),
    promptTokens: sum('promptTokens'),
    cachedTokens: sum('cachedTokens'),
    completionTokens: sum('completionTokens'),
    costNanos: points.reduce((total, { costNanos }) => total + BigInt(costNanos), 0n).toString(),
  };
}
