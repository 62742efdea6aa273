import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { Usage } from '../../src/api/answers';
import { amountOfNanos } from './format';

/** The largest library of the pages, so it loads after the numbers. */
const BarChart = lazy(() => import('./bar-chart'));

const HEIGHT = 280;
const NANOS_PER_UNIT = 1e9;
const OTHERS = 'others';
const ALL = 'spend';
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

interface UsageChartProps {
  usage: Usage;
  step: 'day' | 'hour';
  /** The name of a series, by its model or key. */
  nameOf: (name: string) => string;
}

/** Stacked bars of the spend. */
export function UsageChart({ usage, step, nameOf }: UsageChartProps) {
  const rest = usage.names.length === 0 ? ALL : OTHERS;
  const bars = new Map<string, Record<string, string | number>>();
  for (const { at, name, costNanos } of usage.points) {
    const bar = bars.get(at) ?? { at: at.slice(0, step === 'day' ? 10 : 16) };
    // The height of a bar; the numbers beside it are exact.
    bar[name ?? rest] = Number(costNanos) / NANOS_PER_UNIT;
    bars.set(at, bar);
  }
  const hasRest = usage.points.some(({ name }) => name === null);
  const series = [...usage.names, ...(hasRest ? [rest] : [])].map((name, index) => ({
    name,
    label: name === rest ? rest : nameOf(name),
    color: COLORS[index % COLORS.length]!,
  }));
  return (
    <Suspense fallback={<Skeleton h={HEIGHT} />}>
      <BarChart
        h={HEIGHT}
        data={[...bars.values()]}
        dataKey="at"
        type="stacked"
        withLegend
        series={series}
        valueFormatter={(value: number) => amountOfNanos(BigInt(Math.round(value * NANOS_PER_UNIT)))}
      />
    </Suspense>
  );
}
