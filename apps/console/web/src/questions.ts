import type { Overview, UsageOfRange } from '../../src/api/answers';
import { api, pathOf, queryOf } from './api';

// What the pages with most numbers ask for. The router asks it while the scripts of the page and the person are still
// on their way, so it is not in those scripts.

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** More hours are too many bars. */
const MAX_DAYS_BY_HOUR = 7;

/** What is chosen on the page of the usage, in its URL. */
export interface UsageSearch {
  days?: string;
  by?: string;
  step?: string;
  model?: string | undefined;
  keyId?: string | undefined;
}

export const overviewQuestion = (tenantId: string) => ({
  queryKey: ['overview', tenantId],
  queryFn: () => api.get<Overview>(pathOf('tenants', tenantId, 'overview')),
});

export function usageQuestion(tenantId: string, search: UsageSearch) {
  const { days, by, step, series, model, keyId } = usageChoice(search);
  return {
    queryKey: ['usage', tenantId, days, by, step, model, keyId],
    queryFn: () =>
      api.get<UsageOfRange>(
        pathOf('tenants', tenantId, 'usage') + rangeOf({ days: Number(days), step, by: series, model, keyId }),
      ),
  };
}

/** The choice with its defaults. `series`: what the bars are divided by. */
export function usageChoice({ days = '30', by = 'model', step: wanted, model, keyId }: UsageSearch) {
  const mayBeHours = Number(days) <= MAX_DAYS_BY_HOUR;
  const isByHour = mayBeHours && (wanted ?? (days === '1' ? 'hour' : 'day')) === 'hour';
  const step: 'day' | 'hour' = isByHour ? 'hour' : 'day';
  const series: 'model' | 'key' | undefined = by === 'model' || by === 'key' ? by : undefined;
  return { days, by, step, series, mayBeHours, model, keyId };
}

interface Range {
  days: number;
  step: 'day' | 'hour';
  by: 'model' | 'key' | undefined;
  model: string | undefined;
  keyId: string | undefined;
}

/** Whole steps, so that the same choice is the same question for a while. */
function rangeOf({ days, step, ...rest }: Range): string {
  const [stepMs, steps] = step === 'hour' ? [HOUR_MS, days * 24] : [DAY_MS, days];
  const toMs = (Math.floor(Date.now() / stepMs) + 1) * stepMs;
  const times = { from: new Date(toMs - steps * stepMs).toISOString(), to: new Date(toMs).toISOString() };
  return queryOf({ ...times, step, ...rest });
}
