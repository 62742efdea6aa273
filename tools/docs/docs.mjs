// docs.mjs [--check]: writes the generated tables of docs/operating, or only checks that they are up to date. Runs on
// Node 24 in a compiled checkout.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { ROOT } from '../setup/prepare.mjs';
import { metricsTable } from './metrics-table.mjs';
import { settingsTable } from './settings-table.mjs';
import { valuesTable } from './values-table.mjs';

/** Each table is the text between two comments of its file. */
const TABLES = [
  { file: 'docs/operating/settings.md', name: 'settings', table: settingsTable },
  { file: 'docs/operating/metrics.md', name: 'metrics', table: metricsTable },
  { file: 'docs/operating/kubernetes.md', name: 'values', table: valuesTable },
];

const { check = false } = parseArgs({ options: { check: { type: 'boolean' } } }).values;
const stale = [];
for (const { file, name, table } of TABLES) {
  const path = join(ROOT, file);
  const before = readFileSync(path, 'utf8');
  const begin = `<!-- ${name}: npm run docs writes this table -->`;
  const end = `<!-- end of ${name} -->`;
  const [head, rest, ...more] = before.split(begin);
  const [, tail] = rest?.split(end) ?? [];
  if (tail === undefined || more.length > 0) throw new Error(`${file} needs one "${begin}" and one "${end}" after it`);
  const filled = `${head}${begin}\n\n${await table()}\n\n${end}${tail}`;
  const after = await format(filled, { ...(await resolveConfig(path)), filepath: path });
  if (after === before) continue;
  stale.push(file);
  if (!check) writeFileSync(path, after);
}
if (check && stale.length > 0) {
  process.stderr.write(`${stale.join(', ')}: out of date. Run: npm run docs\n`);
  process.exitCode = 1;
}
