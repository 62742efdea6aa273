// The tables of docs/operating/capacity.md, from the unit costs and the model.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALLOWED, compare, isClose } from '../capacity/check.mjs';
import { capacityOf } from '../capacity/model.mjs';
import { ROOT } from '../setup/prepare.mjs';
import { markdownTable } from './markdown-table.mjs';

const LOADS = [
  { requestsPerSecond: 100, tenants: 1_000 },
  { requestsPerSecond: 1_000, tenants: 1_000 },
  { requestsPerSecond: 1_000, tenants: 100_000 },
  { requestsPerSecond: 10_000, tenants: 10_000 },
  { requestsPerSecond: 10_000, tenants: 1_000_000 },
  { requestsPerSecond: 100_000, tenants: 100_000 },
  { requestsPerSecond: 100_000, tenants: 1_000_000 },
];
const costs = () => JSON.parse(readFileSync(join(ROOT, 'tools/capacity/unit-costs.json'), 'utf8'));
const capacities = () => LOADS.map((load) => capacityOf(load, costs()));
/** Limits of which a load uses less are left out, unless it is the first. */
const TOLD_SHARE = 1;
const whole = (number) => Math.round(number).toLocaleString('en-US');
/** Two significant digits, without an exponent. */
const rough = (number) => Number(number.toPrecision(2)).toLocaleString('en-US', { maximumSignificantDigits: 2 });

const gbOf = (gb) => (gb < 0.1 ? '< 0.1 GB' : `${rough(gb)} GB`);

/** When and on what a run was made. On two lines, because prose has at most 100 columns. */
const circumstances = (what, { at, machine: { cores, load, rounds } }) =>
  `- ${what}: measured on ${at.slice(0, 10)}, on ${cores} cores, in ${rounds} ${rounds === 1 ? 'round' : 'rounds'}.\n` +
  `  Load averages before (1, 5 and 15 minutes): ${load.map((mean) => mean.toFixed(1)).join(', ')}.`;

export const unitCostsTable = () => {
  const { cpuMicros, measuredRequests, measuredChunks, gatewayCores } = costs();
  const table = markdownTable(
    ['CPU, µs', 'a request', 'a chunk of a stream'],
    Object.entries(cpuMicros.request).map(([part, micros]) => [
      part,
      rough(micros),
      cpuMicros.chunk[part] === undefined ? '–' : rough(cpuMicros.chunk[part]),
    ]),
  );
  const bare = `In the run of the chunks, a bare Node proxy cost ${measuredChunks.bareProxyMicros} µs a request.`;
  return [
    `${table}\n`,
    circumstances('Requests', measuredRequests),
    `- A gateway process itself uses ${gatewayCores} cores, at any load.`,
    circumstances('Chunks', measuredChunks),
    `- ${bare}`,
  ].join('\n');
};

export const capacityTable = () =>
  markdownTable(
    [
      ...['requests/s', 'tenants', 'gateway', 'metering', 'billing', 'auth', 'Redis', 'partitions', 'Kafka'],
      ...['PostgreSQL', 'usage', 'books'],
    ],
    capacities().map(({ requestsPerSecond, tenants, replicas, redis, kafka, postgres }) => [
      ...[requestsPerSecond, tenants, replicas.gateway, replicas.metering, replicas.billing, replicas.auth].map(whole),
      `${whole(redis.shards)} × ${gbOf(redis.gb / redis.shards)}`,
      whole(kafka.partitions),
      `${rough(kafka.cores)} cores`,
      `${rough(postgres.cores)} cores, ${rough(postgres.walMbPerSecond)} MB/s`,
      ...[postgres.usageTb, postgres.booksTb].map((tb) => `${rough(tb)} TB`),
    ]),
  );

export const bottlenecksTable = () =>
  markdownTable(
    ['requests/s', 'tenants', 'limit', 'used', 'what to change'],
    capacities().flatMap(({ requestsPerSecond, tenants, limits }) =>
      limits
        .filter(({ share }, place) => place === 0 || share >= TOLD_SHARE)
        .map(({ name, share, change }, place) => [
          ...(place === 0 ? [requestsPerSecond, tenants].map(whole) : ['', '']),
          name,
          `${whole(share * 100)} %`,
          share < 1 ? 'Nothing.' : change,
        ]),
    ),
  );

export const replicasTable = () => {
  const record = JSON.parse(readFileSync(join(ROOT, 'tools/capacity/replicas.json'), 'utf8'));
  const cores = (number) => number.toFixed(2);
  const signed = new Intl.NumberFormat('en-US', { style: 'percent', signDisplay: 'exceptZero' });
  const rows = compare(record);
  const missed = rows.filter((row) => !isClose(row));
  const table = markdownTable(
    ['gateways', 'part', 'requests/s', 'cores predicted', 'cores measured', 'difference', 'bar'],
    rows.map((row) => [
      ...[whole(row.replicas), row.part, whole(record.runs.find((run) => run.replicas === row.replicas).perSecond)],
      ...[cores(row.predicted), cores(row.measured), signed.format(row.off), isClose(row) ? 'met' : '**not met**'],
    ]),
  );
  const bar = `The bar of ${ALLOWED * 100} %`;
  const verdicts =
    missed.length === 0
      ? [`- ${bar} is met.`]
      : missed.map(({ replicas, part }) => `- **${bar} is not met** for ${part} with ${replicas} gateways.`);
  const [requests, errors] = ['requests', 'errors'].map((name) => record.runs.reduce((sum, run) => sum + run[name], 0));
  const short = record.machine.quick ? ' A short run (`--quick`).' : '';
  const failed = `- ${whole(requests)} requests were answered, and ${whole(errors)} failed.${short}`;
  return [table, '', circumstances('All rows', record), failed, ...verdicts].join('\n');
};
