// node tools/capacity/take.mjs [bench-results/….json]: takes the unit costs of a run of the bench into unit-costs.json.
// Without a file it takes the newest run. Then run `npm run docs`.
// - `npm run bench -- --replicas` has the costs of requests, and becomes replicas.json, which checks the model.
// - `npm run bench -- --form distributed` has those of chunks, and the write-ahead log.
// Sizes and the cost of a ledger entry stay: docs/operating/capacity.md says where they come from. Requests that failed
// cost other than the rest, so a run of the second kind with errors is refused; the check of the first allows a few.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { SCENARIOS } from '../bench/load/scenarios.mjs';
import { ROOT } from '../setup/prepare.mjs';
import { ALLOWED_ERRORS, unitCosts } from './check.mjs';
import { ASSUMPTIONS } from './model.mjs';

const FILE = join(ROOT, 'tools/capacity/unit-costs.json');
const REPLICAS_FILE = join(ROOT, 'tools/capacity/replicas.json');
const RESULTS = join(ROOT, 'bench-results');
/** The digits behind a microsecond. A stream has many chunks, so their costs are kept more exactly. */
const DIGITS = { request: 1, chunk: 2 };
/** A chunk for each token. */
const CHUNKS = SCENARIOS.streams.body.max_tokens;

const rounded = (micros, digits) =>
  Object.fromEntries(Object.entries(micros).map(([part, value]) => [part, Number(value.toFixed(digits))]));

/**
 * The costs of chunks.
 * @param {object} result what the bench keeps of a run of the distributed form
 * @param {object} costs of before
 */
export function takeChunks({ at, machine, forms }, costs) {
  const summary = forms.find(({ form }) => form === 'distributed');
  if (!summary) throw new Error('this run has no distributed form');
  const microsOf = (scenario) => {
    const row = summary.table[scenario]?.distributed;
    if (!row) throw new Error(`this run has no ${scenario}`);
    if (row.errors > 0) throw new Error(`${scenario} had ${row.errors} errors, so its figures are not to be trusted`);
    const ours = Object.entries(row.cpuMicros).filter(([part]) => part !== 'load' && part !== 'backend');
    // What a part uses when idle does not grow with the requests.
    const net = (part, micros) => Math.max(0, micros - ((summary.idle[part] ?? 0) * 1e6) / row.perSecond);
    return Object.fromEntries(ours.map(([part, micros]) => [part, net(part, micros)]));
  };
  const request = microsOf('plain128');
  // A stream costs what a request costs, and its chunks the rest.
  const chunk = Object.fromEntries(
    Object.entries(microsOf('streams')).map(([part, micros]) => [part, Math.max(0, micros - request[part] / CHUNKS)]),
  );
  return {
    ...costs,
    measuredChunks: { at, machine, bareProxyMicros: Math.round(summary.table.plain128['bare proxy'].ownMicros) },
    cpuMicros: { ...costs.cpuMicros, chunk: rounded(chunk, DIGITS.chunk) },
    bytes: { ...costs.bytes, wal: Math.round(summary.store.plain32['WAL bytes']) },
  };
}

/**
 * The costs of requests, and of a gateway.
 * @param {object} record what the bench keeps of a run with `--replicas`
 * @param {object} costs of before
 */
export function takeRequests(record, costs) {
  for (const { replicas, requests, errors } of record.runs) {
    const share = errors / (requests + errors);
    if (share > ALLOWED_ERRORS)
      throw new Error(
        `${Math.round(share * 100)} % of the requests to ${replicas} × gateway failed, which is too many`,
      );
  }
  const { gatewayCores, request } = unitCosts(record);
  if (gatewayCores >= ASSUMPTIONS.usableShare)
    throw new Error(
      `a gateway without requests would use ${gatewayCores.toFixed(2)} cores, which cannot be: was the run disturbed?`,
    );
  return {
    ...costs,
    measuredRequests: { at: record.at, machine: record.machine },
    cpuMicros: { ...costs.cpuMicros, request: rounded(request, DIGITS.request) },
    gatewayCores: Number(gatewayCores.toFixed(2)),
  };
}

/** The names of results begin with their time. */
function newest() {
  const results = existsSync(RESULTS) ? readdirSync(RESULTS).filter((name) => /^\d{4}-.*Z\.json$/.test(name)) : [];
  if (results.length === 0) throw new Error(`${RESULTS} has no result. Measure first: npm run bench -- --replicas`);
  return join(RESULTS, results.sort().at(-1));
}

if (process.argv[1] === import.meta.filename) {
  const [file = newest()] = process.argv.slice(2);
  const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
  const write = async (path, value) =>
    writeFileSync(path, await format(JSON.stringify(value), { parser: 'json', printWidth: 120 }));
  const result = read(file);
  console.log(`taking ${file}`);
  if (result.runs) {
    await write(FILE, takeRequests(result, read(FILE)));
    await write(REPLICAS_FILE, result);
  } else await write(FILE, takeChunks(result, read(FILE)));
}
