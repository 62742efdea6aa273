// The table of the metrics that the services register.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';
import { markdownTable } from './markdown-table.mjs';

const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'];

/** A row for each metric. The gateway's metrics come first, the metrics of all services last. */
export function metricsTable() {
  const rows = new Map();
  for (const service of SERVICES) {
    for (const metric of registeredIn(service)) {
      const row = rows.get(metric.name) ?? { ...metric, from: [] };
      if (metric.services?.includes(service) ?? true) row.from.push(service);
      rows.set(metric.name, row);
    }
  }
  const place = ({ from }) => (from.length > 1 ? SERVICES.length + from.length : SERVICES.indexOf(from[0]));
  const sorted = [...rows.values()].sort((a, b) => place(a) - place(b) || (a.name < b.name ? -1 : 1));
  return markdownTable(
    ['Metric', 'Type', 'Labels', 'Services', 'What it says'],
    sorted.map(({ name, type, labels, from, help }) => [
      `\`${name}\``,
      type,
      labels.map((label) => `\`${label}\``).join(', '),
      from.length === SERVICES.length ? 'all' : from.join(', '),
      `${help}.`.replace(/\.\.$/, '.'),
    ]),
  );
}

/** In a separate process, because one process has one registry. */
function registeredIn(service) {
  const script = `
    require(${JSON.stringify(join(ROOT, `apps/${service}/dist/${service}.module.js`))});
    require('@tollgate/messaging');
    console.log(JSON.stringify(require('@tollgate/runtime').describeMetrics()));`;
  return JSON.parse(
    execFileSync(process.execPath, ['--eval', script], { cwd: join(ROOT, 'apps', service) }).toString(),
  );
}
