// The tables of docs/operating/capacity.md, from the unit costs and the model.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compare } from '../capacity/check.mjs';
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
/** Limits of which a load uses less are not told, unless it is the first. */
const TOLD_SHARE = 1;
const whole = (number) => Math.round(number).toLocaleString('en-US');
/** Two significant digits, without an exponent. */
const rough = (number) => Number(number.toPrecision(2)).toLocaleString('en-US', { maximumSignificantDigits: 2 });

const gbOf = (gb) => (gb < 0.1 ? '< 0.1 GB' : `${rough(gb)} GB`);

export const unitCostsTable = () => {
  const { cpuMicros } = costs();
  return markdownTable(
    ['CPU, µs', 'a request', 'a chunk of a stream'],
    Object.entries(cpuMicros.request).map(([part, micros]) => [
      part,
      rough(micros),
      cpuMicros.chunk[part] === undefined ? '–' : rough(cpuMicros.chunk[part]),
    ]),
  );
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
  return markdownTable(
    ['gateways', 'part', 'requests/s', 'cores predicted', 'cores measured', 'difference'],
    compare(record).map(({ replicas, part, predicted, measured, off }) => [
      ...[whole(replicas), part, whole(record.runs.find((run) => run.replicas === replicas).perSecond)],
      ...[cores(predicted), cores(measured), signed.format(off)],
    ]),
  );
};
