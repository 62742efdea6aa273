import type { Overview, UsageOfRange } from '../../../src/api/answers';
import { api, pathOf, queryOf } from './api';

// What the pages with most numbers ask for. The router asks it while the scripts of the page and the person are still
// on their way, so it is not in those scripts.

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** More hours are too many bars. */
const MAX_DAYS_BY_HOUR = 7;
const DEFAULT_DAYS = '30';
/** From 1 to the 400 that the backend answers. The address may have any text. */
const DAYS = /^([1-9]\d?|[123]\d\d|400)$/;

/** What is chosen on the page of the usage, in its URL. */
export interface UsageSearch {
  days?: string;
  /** Instead of the days until now: from inclusive, to exclusive; ISO 8601. */
  from?: string | undefined;
  to?: string | undefined;
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
  const { days, from, to, by, step, series, model, keyId } = usageChoice(search);
  const { from: since, to: until } = from === undefined ? rangeUntilNow(Number(days), step) : { from, to };
  return {
    queryKey: ['usage', tenantId, days, from, to, by, step, model, keyId],
    queryFn: () =>
      api.get<UsageOfRange>(
        pathOf('tenants', tenantId, 'usage') + queryOf({ from: since, to: until, step, by: series, model, keyId }),
      ),
  };
}

/** The choice with its defaults. `days`: empty if a range is chosen. `series`: what the bars are divided by. */
export function usageChoice(search: UsageSearch) {
  const { by = 'model', step: wanted, model, keyId } = search;
  const { from, to } = rangeOf(search);
  const wantedDays = DAYS.test(search.days ?? '') ? search.days! : DEFAULT_DAYS;
  const days = from === undefined ? wantedDays : '';
  const length = from === undefined ? Number(days) : (Date.parse(to) - Date.parse(from)) / DAY_MS;
  const mayBeHours = length <= MAX_DAYS_BY_HOUR;
  const isByHour = mayBeHours && (wanted ?? (length <= 1 ? 'hour' : 'day')) === 'hour';
  const step: 'day' | 'hour' = isByHour ? 'hour' : 'day';
  const series: 'model' | 'key' | undefined = by === 'model' || by === 'key' ? by : undefined;
  return { days, from, to, by, step, series, mayBeHours, model, keyId };
}

/** The chosen range. An end that is not chosen is the end of today, or a month before or after the other. */
function rangeOf({ from, to }: UsageSearch): { from: string; to: string } | { from?: undefined; to?: undefined } {
  if (from === undefined && to === undefined) return {};
  const end = to ?? new Date((Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS).toISOString();
  const monthBefore = new Date(Date.parse(end) - Number(DEFAULT_DAYS) * DAY_MS);
  // The backend says what is wrong with a text that is no time.
  return { from: from ?? (Number.isNaN(monthBefore.getTime()) ? end : monthBefore.toISOString()), to: end };
}

/** Whole steps, so that the same choice is the same question for a while. */
function rangeUntilNow(days: number, step: 'day' | 'hour'): { from: string; to: string } {
  const [stepMs, steps] = step === 'hour' ? [HOUR_MS, days * 24] : [DAY_MS, days];
  const toMs = (Math.floor(Date.now() / stepMs) + 1) * stepMs;
  return { from: new Date(toMs - steps * stepMs).toISOString(), to: new Date(toMs).toISOString() };
}
