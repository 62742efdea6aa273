import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { UsageSummary } from '../../src/api/answers';

/** The largest library of the pages, so it loads after the numbers. */
const BarChart = lazy(() => import('./bar-chart'));

const HEIGHT = 280;
const CENTS = 100;
/** More series than colours cannot be told apart: the smallest are drawn as one. */
const MAX_SERIES = 8;
const OTHERS = 'others';
const COLORS = [
  'indigo.6',
  'teal.6',
  'orange.6',
  'grape.6',
  'cyan.6',
  'lime.7',
  'pink.6',
  'yellow.7',
  'gray.6',
] as const;

type Group = UsageSummary['groups'][number];

interface UsageChartProps {
  rows: readonly Group[];
  time: 'day' | 'hour';
  series: 'model' | 'key' | null;
}

/** Stacked bars of the spend. */
export function UsageChart({ rows, time, series }: UsageChartProps) {
  const nameOf = (row: Group): string => (series === null ? 'spend' : (row[series] ?? '–'));
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(nameOf(row), (sums.get(nameOf(row)) ?? 0) + row.costCents);
  const largest = [...sums].sort(([, one], [, other]) => other - one).map(([name]) => name);
  const shown = largest.length <= MAX_SERIES ? largest : [...largest.slice(0, MAX_SERIES), OTHERS];
  const bars = new Map<string, Record<string, string | number>>();
  for (const row of rows) {
    const at = row[time] ?? '';
    const bar = bars.get(at) ?? { at };
    const name = shown.includes(nameOf(row)) ? nameOf(row) : OTHERS;
    bar[name] = Number(bar[name] ?? 0) + row.costCents / CENTS;
    bars.set(at, bar);
  }
  const data = [...bars.values()].sort((one, other) => String(one['at']).localeCompare(String(other['at'])));
  return (
    <Suspense fallback={<Skeleton h={HEIGHT} />}>
      <BarChart
        h={HEIGHT}
        data={data}
        dataKey="at"
        type="stacked"
        withLegend
        series={shown.map((name, index) => ({ name, color: COLORS[index]! }))}
        valueFormatter={(value: number) => value.toFixed(2)}
      />
    </Suspense>
  );
}
