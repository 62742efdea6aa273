// The tables of a run, as Markdown.
import { SCENARIOS } from '../load/scenarios.mjs';
import { judge } from './bars.mjs';
import { OUTSIDE } from './summary.mjs';

/** @returns {string} what a form was measured at */
export function tablesOf(summary) {
  return [
    `## ${summary.form}`,
    ...Object.entries(SCENARIOS)
      .filter(([name]) => summary.table[name])
      .map(([name, scenario]) => `### ${scenario.title}\n\n${scenarioTable(summary, name, scenario)}`),
    `### Bars\n\n${barsTable(summary)}`,
    besides(summary),
  ].join('\n\n');
}

function scenarioTable(summary, name, { unit }) {
  const rows = summary.table[name];
  const parts = [...new Set(Object.values(rows).flatMap((row) => Object.keys(row.cpuMicros)))];
  const inside = parts.filter((part) => ![...OUTSIDE, 'gateway', summary.measured].includes(part));
  const bare = rows['bare proxy']?.ownMicros;
  const micros = (row, part) => figure(row.cpuMicros[part]);
  return table(
    [
      'gateway',
      `${unit}s/s`,
      'p50 ms',
      'p99 ms',
      ...(name === 'paced' ? ['first token p50 ms'] : []),
      'own µs',
      '÷ bare',
      ...inside.map((part) => `${part} µs`),
      'all others µs',
      ...OUTSIDE.map((part) => `${part} µs`),
      'its core, the other',
      'errors',
    ],
    Object.entries(rows).map(([gateway, row]) => [
      gateway,
      figure(row.perSecond),
      figure(row.p50Ms),
      figure(row.p99Ms),
      ...(name === 'paced' ? [figure(row.firstTokenP50Ms)] : []),
      figure(row.ownMicros),
      figure(row.ownMicros === null || bare == null ? null : row.ownMicros / bare),
      ...inside.map((part) => micros(row, part)),
      figure(row.othersMicros),
      ...OUTSIDE.map((part) => micros(row, part)),
      `${percent(row.coreShares.measured)}, ${percent(row.coreShares.rest)}`,
      String(row.errors),
    ]),
  );
}

const barsTable = (summary) =>
  table(
    ['figure', 'measured', 'bar (stretch)', ''],
    judge(summary).map(({ name, value, unit, bar, verdict }) => [
      name,
      value === null ? '–' : `${figure(value)} ${unit}`.trim(),
      bar,
      verdict,
    ]),
  );

function besides({ idle, firstStartMs, memory, store, halfLoad }) {
  const shares = Object.entries(idle).map(([part, share]) => `${part} ${percent(share)}`);
  const ofStore = Object.entries(store ?? {}).map(
    ([scenario, counts]) =>
      `- PostgreSQL, a request, ${SCENARIOS[scenario].title}: ` +
      Object.entries(counts)
        .map(([name, value]) => `${figure(value)} ${name}`)
        .join(', '),
  );
  return [
    `- idle, of a core: ${shares.join(', ')}`,
    `- first start: ${figure(firstStartMs / 1_000)} s`,
    `- memory after load: ${figure(memory.afterLoadBytes / 1e6)} MB; ` +
      `PostgreSQL ${figure(memory.postgresBytes / 1e6)} MB`,
    ...(memory.perStream
      ? [
          `- memory of a stream, ${memory.perStream.count} open: ${figure(memory.perStream.rssKib)} KiB resident, ` +
            `${figure(memory.perStream.liveKib)} KiB alive`,
        ]
      : []),
    ...(halfLoad ? [`- half load: ${halfLoad.ratePerSecond} requests/s`] : []),
    ...ofStore,
  ].join('\n');
}

/** Three digits that count; nothing measured is a dash. */
export function figure(value) {
  if (value == null || !Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-GB');
  return String(Number(value.toPrecision(3)));
}

const percent = (share) => (share == null ? '–' : `${Math.round(share * 100)} %`);

/** A table of Markdown whose columns are as wide as they must be. */
export function table(head, rows) {
  const widths = head.map((title, i) =>
    Math.max(3, ...[title, ...rows.map((row) => row[i])].map((cell) => cell.length)),
  );
  const line = (cells) =>
    `| ${cells.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width))).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}
