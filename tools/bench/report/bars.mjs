// The bars of each form. Ratios count: what a core does in a second differs between machines, and between two days.
// Each: what it is, how it is read from the summary of a form, the most (or `least`) that it may be, the stretch.

/**
 * @typedef {{ name: string, unit: string, read: (summary: object) => number | null, most?: number, least?: number,
 *   stretch?: number }} Bar  without `most` and `least` the figure is only told
 */
const row = (summary, scenario, gateway) => summary.table[scenario]?.[gateway];
const own = (summary, scenario) => row(summary, scenario, summary.form);
const cpu = (summary, scenario, part = summary.measured) => own(summary, scenario)?.cpuMicros[part] ?? null;
const toBare = (summary, scenario) =>
  divided(own(summary, scenario)?.ownMicros, row(summary, scenario, 'bare proxy')?.ownMicros);
const added = (summary, scenario, figure) =>
  difference(own(summary, scenario)?.[figure], row(summary, scenario, 'direct')?.[figure]);

const divided = (a, b) => (a == null || b == null ? null : a / b);
const difference = (a, b) => (a == null || b == null ? null : a - b);
const MB = 1e6;

/** @type {Bar[]} */
const BOTH = [
  {
    name: '16 paced streams: time to first token added, p50',
    unit: 'ms',
    read: (summary) => added(summary, 'paced', 'firstTokenP50Ms'),
    most: 1.2,
    stretch: 0.3,
  },
  { name: 'half load: p99 added', unit: 'ms', read: ({ halfLoad }) => halfLoad?.addedP99Ms, most: 5, stretch: 2 },
  {
    name: 'half load: answer → debit, p99',
    unit: 'ms',
    read: ({ halfLoad }) => halfLoad?.debitLagMs.p99,
    most: 1_500,
    stretch: 1_000,
  },
  { name: 'metering ÷ a raw COPY', unit: '×', read: ({ ingestRatio }) => ingestRatio, least: 0.45, stretch: 0.6 },
  {
    name: 'memory of an open stream (the larger of resident and alive)',
    unit: 'KiB',
    read: ({ memory }) => (memory.perStream ? Math.max(memory.perStream.rssKib, memory.perStream.liveKib) : null),
    most: 45,
  },
];

/** @type {Record<string, Bar[]>} */
const BARS = {
  distributed: [
    {
      name: 'gateway CPU a request ÷ bare proxy, 128 connections',
      unit: '×',
      read: (summary) => toBare(summary, 'plain128'),
      most: 2,
      stretch: 1.35,
    },
    {
      name: 'gateway CPU a request ÷ bare proxy, 32 connections',
      unit: '×',
      read: (summary) => toBare(summary, 'plain32'),
      most: 2.5,
      stretch: 1.35,
    },
    {
      name: 'all others, CPU a request, 128 connections',
      unit: 'µs',
      read: (summary) => own(summary, 'plain128')?.othersMicros,
      most: 200,
      stretch: 100,
    },
    {
      name: 'gateway CPU a chunk ÷ bare proxy, 32 streams',
      unit: '×',
      read: (summary) => toBare(summary, 'streams'),
      most: 1.3,
      stretch: 1,
    },
    {
      name: 'one connection: p50 added',
      unit: 'ms',
      read: (summary) => added(summary, 'plain1', 'p50Ms'),
      most: 0.8,
      stretch: 0.3,
    },
    { name: 'one connection: gateway CPU', unit: 'µs', read: (summary) => cpu(summary, 'plain1'), most: 400 },
    {
      name: 'one connection: CPU of all others',
      unit: 'µs',
      read: (summary) => own(summary, 'plain1')?.othersMicros,
      most: 600,
    },
    ...BOTH,
  ],
  standalone: [
    { name: 'Node CPU a request, 32 connections', unit: 'µs', read: (summary) => cpu(summary, 'plain32'), most: 220 },
    {
      name: 'PostgreSQL CPU a request, 32 connections',
      unit: 'µs',
      read: (summary) => cpu(summary, 'plain32', 'PostgreSQL'),
      most: 150,
    },
    {
      name: 'requests/s, 32 connections',
      unit: '/s',
      read: (summary) => own(summary, 'plain32')?.perSecond,
      least: 4_000,
      stretch: 6_000,
    },
    { name: 'p50, 32 connections', unit: 'ms', read: (summary) => own(summary, 'plain32')?.p50Ms, most: 8 },
    {
      name: 'one connection: p50 added',
      unit: 'ms',
      read: (summary) => added(summary, 'plain1', 'p50Ms'),
      most: 1.2,
      stretch: 0.6,
    },
    {
      name: 'Node CPU a chunk ÷ bare proxy, 32 streams',
      unit: '×',
      read: (summary) => toBare(summary, 'streams'),
      most: 1.3,
      stretch: 1,
    },
    {
      name: 'PostgreSQL CPU a chunk, 32 streams',
      unit: 'µs',
      read: (summary) => cpu(summary, 'streams', 'PostgreSQL'),
      most: 0.3,
    },
    {
      name: 'memory after load',
      unit: 'MB',
      read: ({ memory }) => memory.afterLoadBytes / MB,
      most: 350,
    },
    {
      name: 'one connection: transactions a request',
      unit: '',
      read: ({ store }) => store?.plain1.transactions,
      most: 4,
    },
    { name: 'one connection: WAL fsyncs a request', unit: '', read: ({ store }) => store?.plain1['WAL fsyncs'] },
    {
      name: '32 connections: transactions a request',
      unit: '',
      read: ({ store }) => store?.plain32.transactions,
    },
    { name: '32 connections: WAL fsyncs a request', unit: '', read: ({ store }) => store?.plain32['WAL fsyncs'] },
    ...BOTH,
  ],
};

/** @returns {{ name: string, value: number | null, unit: string, bar: string, verdict: string }[]} */
export function judge(summary) {
  return BARS[summary.form].map(({ name, unit, read, most, least, stretch }) => {
    const value = read(summary) ?? null;
    const sign = least === undefined ? '≤' : '≥';
    const limit = most ?? least;
    const reaches = (bound) => (least === undefined ? value <= bound : value >= bound);
    const verdict = limit === undefined ? '' : value === null ? 'not measured' : reaches(limit) ? 'met' : 'not met';
    const isStretched = verdict === 'met' && stretch !== undefined && reaches(stretch);
    return {
      name,
      unit,
      value,
      bar: limit === undefined ? '' : `${sign} ${limit}${stretch === undefined ? '' : ` (${stretch})`}`,
      verdict: isStretched ? 'met, stretch too' : verdict,
    };
  });
}
