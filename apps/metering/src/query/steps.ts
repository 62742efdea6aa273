import { MAX_SERIES_DAYS, RequestError, type UsageSeriesQuery, type UsageStep } from '@tollgate/contracts';
import { DAY_MS, HOUR_MS } from '../hours';
import { iso, parseTime } from './parameters';

/** What times are widened to. */
const WHOLE_MS: Record<UsageStep, number> = { hour: HOUR_MS, day: DAY_MS, all: HOUR_MS };

/** The range of a series in whole steps, ISO 8601. RequestError invalid_parameter. */
export function readSteps({ from, to, step }: Pick<UsageSeriesQuery, 'from' | 'to' | 'step'>): [string, string] {
  if (!Object.hasOwn(WHOLE_MS, step)) throw new RequestError('invalid_parameter', 'step must be hour, day or all.');
  const wholeMs = WHOLE_MS[step];
  const fromMs = Math.floor(parseTime('from', from) / wholeMs) * wholeMs;
  const toMs = Math.ceil(parseTime('to', to) / wholeMs) * wholeMs;
  if (fromMs > toMs) throw new RequestError('invalid_parameter', 'from must not be after to.');
  if (toMs - fromMs > MAX_SERIES_DAYS[step] * DAY_MS)
    throw new RequestError(
      'invalid_parameter',
      `With step ${step}, the range must not be longer than ${MAX_SERIES_DAYS[step]} days. Narrow it.`,
    );
  return [iso(fromMs), iso(toMs)];
}

/**
 * The beginning of the step (UTC) of a row's `hour`. The statement's $2 is the beginning of the range. Uses date_bin,
 * because date_trunc with a zone takes longer than all sums of the row.
 */
export const stepSql = (step: UsageStep): string =>
  step === 'all' ? '$2::timestamptz' : `date_bin('1 ${step}', hour, '2000-01-01Z')`;
