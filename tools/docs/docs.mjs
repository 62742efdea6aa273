// docs.mjs [--check]: writes the generated tables of docs and the dashboards, or only checks that they are up
// to date. Runs on Node 24 in a compiled checkout.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { dashboardFiles } from '../dashboards/dashboards.mjs';
import { ROOT } from '../setup/prepare.mjs';
import { bottlenecksTable, capacityTable, replicasTable, unitCostsTable } from './capacity-table.mjs';
import { metricsTable } from './metrics-table.mjs';
import { picturesTable } from './pictures-table.mjs';
import { rulesTable } from './rules-table.mjs';
import { settingsTable } from './settings-table.mjs';
import { valuesTable } from './values-table.mjs';

/** Each table is the text between two comments of its file. */
const TABLES = [
  { file: 'docs/operating/settings.md', name: 'settings', table: settingsTable },
  { file: 'docs/operating/metrics.md', name: 'metrics', table: metricsTable },
  { file: 'docs/operating/kubernetes.md', name: 'values', table: valuesTable },
  { file: 'docs/operating/capacity.md', name: 'unit costs', table: unitCostsTable },
  { file: 'docs/operating/capacity.md', name: 'capacity', table: capacityTable },
  { file: 'docs/operating/capacity.md', name: 'bottlenecks', table: bottlenecksTable },
  { file: 'docs/operating/capacity.md', name: 'replicas', table: replicasTable },
  { file: 'libs/admission/README.md', name: 'rules', table: rulesTable },
  { file: 'docs/console/README.md', name: 'pictures', table: picturesTable },
];

const { check = false } = parseArgs({ options: { check: { type: 'boolean' } } }).values;
const stale = [];
/** The text as Prettier writes it. Remembers a file that differs, and writes it unless it is only checked. */
async function put(file, text, before) {
  const path = join(ROOT, file);
  const after = await format(text, { ...(await resolveConfig(path)), filepath: path });
  if (after === before) return;
  stale.push(file);
  if (!check) writeFileSync(path, after);
}
for (const { file, name, table } of TABLES) {
  const before = readFileSync(join(ROOT, file), 'utf8');
  const begin = `<!-- ${name}: npm run docs writes this table -->`;
  const end = `<!-- end of ${name} -->`;
  const [head, rest, ...more] = before.split(begin);
  const [, tail] = rest?.split(end) ?? [];
  if (tail === undefined || more.length > 0) throw new Error(`${file} needs one "${begin}" and one "${end}" after it`);
  await put(file, `${head}${begin}\n\n${await table()}\n\n${end}${tail}`, before);
}
for (const { file, text } of dashboardFiles()) {
  const path = join(ROOT, file);
  await put(file, text, existsSync(path) ? readFileSync(path, 'utf8') : '');
}
if (check && stale.length > 0) {
  process.stderr.write(`${stale.join(', ')}: out of date. Run: npm run docs\n`);
  process.exitCode = 1;
}
