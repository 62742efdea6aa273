import { Skeleton } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { BarRectangleItem } from 'recharts';
import type { Usage } from '../../src/api/answers';
import { amountOfNanos } from './format';
import { useTenant } from './me';
import type { RequestsSearch } from './pages/requests';

/** The largest library of the pages, so it loads after the numbers. */
const BarChart = lazy(() => import('./bar-chart'));

const HEIGHT = 280;
/** Room for amounts of a fraction of a cent. */
const AXIS_WIDTH = 90;
const NANOS_PER_UNIT = 1e9;
const STEP_MS = { hour: 3_600_000, day: 86_400_000 };
const LABEL_CHARS = { hour: 16, day: 10 };
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

/** A bar for every step of the range, those without requests too. */
function emptyBars({ from, to }: Usage, step: 'day' | 'hour'): Map<string, Record<string, string | number>> {
  const bars = new Map<string, Record<string, string | number>>();
  for (let ms = Date.parse(from); ms < Date.parse(to); ms += STEP_MS[step]) {
    const at = new Date(ms).toISOString();
    bars.set(at, { from: at, at: at.slice(0, LABEL_CHARS[step]).replace('T', ' ') });
  }
  return bars;
}

interface UsageChartProps {
  usage: Usage;
  step: 'day' | 'hour';
  /** The name of a series, by its model or key. */
  nameOf: (name: string) => string;
  /**
   * The requests behind a part of a bar; null if they have no filter. A table or link beside it is for the keyboard.
   */
  requestsOf: (point: { at: string; name: string | null }) => RequestsSearch | null;
}

/** Stacked bars of the spend. A click on one leads to its requests. */
export function UsageChart({ usage, step, nameOf, requestsOf }: UsageChartProps) {
  const { id } = useTenant();
  const navigate = useNavigate();
  const rest = usage.names.length === 0 ? ALL : OTHERS;
  const bars = emptyBars(usage, step);
  // The heights of the bars; the numbers beside them are exact.
  for (const { at, name, costNanos } of usage.points) bars.get(at)![name ?? rest] = Number(costNanos) / NANOS_PER_UNIT;
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
        yAxisProps={{ width: AXIS_WIDTH }}
        series={series}
        barProps={({ name: series }) => {
          const name = series === rest ? null : series;
          if (requestsOf({ at: usage.from, name }) === null) return {};
          const open = ({ payload }: BarRectangleItem) => {
            const search = requestsOf({ at: (payload as { from: string }).from, name });
            void navigate({ to: '/t/$tenantId/requests', params: { tenantId: id }, search: search as never });
          };
          return { onClick: open, cursor: 'pointer' };
        }}
        valueFormatter={(value: number) => amountOfNanos(BigInt(Math.round(value * NANOS_PER_UNIT)))}
      />
    </Suspense>
  );
}
