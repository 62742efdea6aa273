import { Box, ColorSwatch, Group, Paper, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState, type KeyboardEvent, type MouseEvent, type PointerEvent } from 'react';
import type { Usage } from '../../../src/api/answers';
import { barsOf, labelled, placeOf, ticksOf, type Bar } from './bars';
import { amountOfNanos, localTime } from '../parts/format';
import { useTenant } from '../backend/me';
import type { RequestsSearch } from '../pages/requests';

const LABEL_CHARS = { hour: 16, day: 10 };
/** On a phone, every second one. */
const LABELS = 6;
/** The height and width of the drawing, which is stretched to its place. */
const WHOLE = 100;
/** The share of a bar's width that is filled. The remainder is the gap. */
const FILLED = 0.8;
const NAMES = ['indigo-6', 'teal-6', 'orange-6', 'grape-6', 'cyan-6', 'lime-7', 'pink-6', 'yellow-7', 'gray-6'];
const COLORS = NAMES.map((name) => `var(--mantine-color-${name})`);

interface UsageChartProps {
  usage: Usage;
  step: 'day' | 'hour';
  /** The name of a series, by its model or key. Null: all others, or all requests. */
  nameOf: (name: string | null) => string;
  /** The requests behind a part of a bar. A table or link beside the chart leads the keyboard to them. */
  requestsOf: (point: { at: string; name: string | null }) => RequestsSearch;
}

/**
 * Stacked bars of the spend. The pointer, or an arrow key, shows the amounts of one; a click leads to its requests. For
 * the keyboard and screen readers it is a slider over the bars, because that is one stop of the Tab key, and each move
 * is read out with its date and amounts. Times are in UTC, with the local one beside the amounts. It is drawn here,
 * because Recharts would add 117 KB to the 204 KB of the first page (ADR 0032).
 */
export function UsageChart({ usage, step, nameOf, requestsOf }: UsageChartProps) {
  const { id } = useTenant();
  const navigate = useNavigate();
  /** Null: the newest. It stays when its amounts are hidden, so that arrow keys go on from it. */
  const [chosen, setChosen] = useState<number | null>(null);
  const [isShown, setShown] = useState(false);
  const { series, bars } = useMemo(() => barsOf(usage, step), [usage, step]);
  const ticks = useMemo(() => ticksOf(bars), [bars]);
  const drawn = useMemo(() => <Parts bars={bars} top={ticks.at(-1)!} />, [bars, ticks]);
  const labelOf = ({ from }: Bar) => from.slice(0, LABEL_CHARS[step]).replace('T', ' ');
  const newest = bars.length - 1;
  // Another range may have fewer bars.
  const place = Math.min(chosen ?? newest, newest);
  const bar = bars[place]!;
  const show = (index: number) => {
    setChosen(index);
    setShown(true);
  };
  const point = ({ clientX, currentTarget }: PointerEvent) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    const index = Math.floor(((clientX - left) / width) * bars.length);
    show(Math.min(Math.max(index, 0), bars.length - 1));
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape') setShown(false);
    // With another key, such as Alt, they are the browser's.
    const isModified = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    const next = isModified ? null : placeOf(event.key, place, bars.length);
    if (next === null) return;
    // The arrows would also scroll the page.
    event.preventDefault();
    show(next);
  };
  const open = ({ target }: MouseEvent) => {
    const { bar, part } = (target as SVGElement).dataset;
    if (bar === undefined || part === undefined) return;
    const search = requestsOf({ at: bars[Number(bar)]!.from, name: series[Number(part)]! });
    void navigate({ to: '/t/$tenantId/requests', params: { tenantId: id }, search: search as never });
  };
  return (
    <Box my="sm">
      <Group gap="md" mb="xs">
        {series.map((name, index) => (
          <Named key={name} name={nameOf(name)} color={COLORS[index]!} />
        ))}
      </Group>
      <div className="chart">
        <div className="chart-amounts figures">
          {ticks.map((tick, index) => (
            <span key={index} style={{ bottom: `${(index / (ticks.length - 1)) * WHOLE}%` }}>
              {amountOfNanos(tick)}
            </span>
          ))}
        </div>
        <div
          className="chart-plot mantine-focus-auto"
          role="slider"
          tabIndex={0}
          aria-label={`Spend by ${step}`}
          aria-valuemin={0}
          aria-valuemax={newest}
          aria-valuenow={place}
          aria-valuetext={`${labelOf(bar)} UTC: ${series
            .map((name, index) => `${nameOf(name)} ${amountOfNanos(bar.nanos[index]!)}`)
            .join(', ')}`}
          onPointerMove={point}
          onPointerLeave={() => setShown(false)}
          onFocus={() => setShown(true)}
          onBlur={() => setShown(false)}
          onKeyDown={press}
          onClick={open}
        >
          {ticks.map((_, index) => (
            <hr key={index} style={{ bottom: `${(index / (ticks.length - 1)) * WHOLE}%` }} />
          ))}
          {isShown ? (
            <div
              className="chart-chosen"
              style={{ left: `${(place / bars.length) * WHOLE}%`, width: `${WHOLE / bars.length}%` }}
            />
          ) : null}
          <svg viewBox={`0 0 ${bars.length} ${WHOLE}`} preserveAspectRatio="none">
            {drawn}
          </svg>
          {isShown ? (
            <Paper withBorder shadow="md" p="xs" className="chart-tip" style={besideOf(place, bars.length)}>
              <Text size="sm" fw={600}>
                {labelOf(bar)} UTC
              </Text>
              {series.map((name, index) => (
                <Group key={name} gap="lg" justify="space-between" wrap="nowrap">
                  <Named name={nameOf(name)} color={COLORS[index]!} />
                  <span className="figures">{amountOfNanos(bar.nanos[index]!)}</span>
                </Group>
              ))}
              <Text size="xs">Begins {localTime(bar.from)}</Text>
            </Paper>
          ) : null}
        </div>
        <div className="chart-zone">UTC</div>
        <div className="chart-times figures">
          {labelled(bars.length, LABELS).map((place, index) => (
            <Box
              component="span"
              key={place}
              {...(index % 2 === 1 && { visibleFrom: 'md' })}
              title={localTime(bars[place]!.from)}
              style={{ left: `${((place + 0.5) / bars.length) * WHOLE}%` }}
            >
              {labelOf(bars[place]!)}
            </Box>
          ))}
        </div>
      </div>
    </Box>
  );
}

const Named = ({ name, color }: { name: string; color: string }) => (
  <Group gap={6} wrap="nowrap">
    <ColorSwatch color={color} size={12} withShadow={false} />
    <Text size="sm" className="chart-name">
      {name}
    </Text>
  </Group>
);

/** It does not hide the bar. */
const besideOf = (index: number, bars: number) =>
  index < bars / 2 ? { left: `${((index + 1) / bars) * WHOLE}%` } : { right: `${(1 - index / bars) * WHOLE}%` };

/** One rectangle for each series of each bar, in heights of `top`. */
function Parts({ bars, top }: { bars: readonly Bar[]; top: bigint }) {
  return bars.map(({ from, nanos }, bar) => {
    let below = 0;
    return nanos.map((part, index) => {
      if (part === 0n) return null;
      // Heights of the screen; the numbers beside them are exact.
      const height = (Number(part) / Number(top)) * WHOLE;
      below += height;
      return (
        <rect
          key={`${from} ${index}`}
          data-bar={bar}
          data-part={index}
          x={bar + (1 - FILLED) / 2}
          y={WHOLE - below}
          width={FILLED}
          height={height}
          style={{ fill: COLORS[index] }}
        />
      );
    });
  });
}
