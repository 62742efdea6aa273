// Panels, and the parts of queries that several of them share. Grafana puts a fitting time into $__rate_interval.

/** Per second, summed by these labels. */
export const rate = (metric, ...by) => `sum by (${by.join(', ')}) (rate(${metric}[$__rate_interval]))`;

/** A quantile of a histogram in seconds. */
const quantile = (q, histogram, filter, ...by) =>
  `histogram_quantile(${q}, ${rate(`${histogram}_bucket${filter}`, 'le', ...by)})`;

/** Nanos per second as amounts of the currency per second. */
export const money = (metric) => `sum(rate(${metric}[$__rate_interval])) / 1e9`;

/** A query with the name that its lines have. `legend` may contain {{label}}. */
export const line = (expr, legend) => ({ expr, legend });

/** Lines for the median and the 99th percentile. */
export const quantiles = (histogram, filter = '', ...by) =>
  [0.5, 0.99].map((q) => {
    const legend = [...by.map((label) => `{{${label}}}`), `p${q * 100}`].join(' ');
    return line(quantile(q, histogram, filter, ...by), legend);
  });

/** A panel of these lines, in a unit of Grafana. */
export const panel = (title, unit, ...lines) => ({ title, unit, lines: lines.flat() });
