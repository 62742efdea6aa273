// Compares the model with a run of `npm run bench -- --replicas`: what one and two gateways cost there predicts what
// four cost. node tools/capacity/check.mjs <bench-results/….json>
import { readFileSync } from 'node:fs';
import { ASSUMPTIONS, capacityOf } from './model.mjs';

/** How far a prediction may be off, to either side: for the gateways, and for all parts together. */
export const ALLOWED = 0.25;
/** The share of failed requests with which a run still counts. */
export const ALLOWED_ERRORS = 0.02;
const ALL = 'all parts';
export const isClose = ({ off }) => Math.abs(off) <= ALLOWED;
/** No reserve, and what the run has: plain requests of one tenant. */
const AS_MEASURED = { ...ASSUMPTIONS, usableShare: 1, streamShare: 0, largestTenantShare: 1 };
const NO_BYTES = {
  ...{ wal: 0, usageEvent: 0, charge: 0, usageHour: 0 },
  ...{ postgresEntry: 0, redisTenant: 0, redisKey: 0 },
};
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The cores that each part of a run uses beyond what it uses when idle, which does not grow with the requests. */
const coresOf = ({ cpuMicros, perSecond }, idle) =>
  Object.fromEntries(
    Object.entries(cpuMicros).map(([part, micros]) => [part, Math.max(0, (micros * perSecond) / 1e6 - idle[part])]),
  );

/**
 * The unit costs of a run with one gateway and one with two. A gateway gathers requests for a turn of its event loop
 * and for its messages. Where more gateways share a load, each has as many turns and messages as before, with fewer
 * requests in them. So a gateway uses a part of a core at any share of the load, and the remainder for each request.
 * @returns {{ gatewayCores: number, request: Record<string, number> }} cores; microseconds of a request by part
 */
export function unitCosts({ idle, runs: [one, two] }) {
  const cores = coresOf(one, idle);
  const growth = two.perSecond / one.perSecond;
  const more = coresOf(two, idle).gateway - cores.gateway * growth;
  const gatewayCores = Math.max(0, more / (two.replicas - one.replicas * growth));
  cores.gateway -= gatewayCores * one.replicas;
  return {
    gatewayCores,
    request: Object.fromEntries(Object.entries(cores).map(([part, used]) => [part, (used * 1e6) / one.perSecond])),
  };
}

/** The cores in use, by part, that the model predicts for these numbers of requests a second and of gateways. */
function predictedCores({ perSecond, replicas }, { request, gatewayCores }) {
  const chunk = Object.fromEntries(Object.keys(request).map((part) => [part, 0]));
  const costs = { cpuMicros: { request, chunk }, entryMicros: { PostgreSQL: 0 }, gatewayCores, bytes: NO_BYTES };
  const { used, redis, kafka, postgres } = capacityOf({ requestsPerSecond: perSecond, tenants: 1 }, costs, AS_MEASURED);
  const gateway = used.gateway + gatewayCores * replicas;
  return { ...used, gateway, Redis: redis.largestTenantCores, Kafka: kafka.cores, PostgreSQL: postgres.cores };
}

/**
 * @param {{ idle: Record<string, number>, runs: object[] }} record  runs of one, two and more gateways
 * @returns {{ replicas: number, part: string, predicted: number, measured: number, off: number }[]} cores in use, of
 *   the gateways and of all parts together, for each further number of gateways; `off` 0.1: the model predicts 10 %
 *   more. For two gateways only all parts: their own cost is one of the two that predict the others.
 */
export function compare({ idle, runs }) {
  const units = unitCosts({ idle, runs });
  return runs.slice(1).flatMap((run, place) => {
    const predicted = predictedCores(run, units);
    const measured = coresOf(run, idle);
    const row = (part, expected, found) => ({
      ...{ replicas: run.replicas, part, predicted: expected, measured: found, off: expected / found - 1 },
    });
    const parts = Object.keys(measured);
    return [
      ...(place === 0 ? [] : [row('gateway', predicted.gateway, measured.gateway)]),
      row(ALL, sum(parts.map((part) => predicted[part])), sum(parts.map((part) => measured[part]))),
    ];
  });
}

if (process.argv[1] === import.meta.filename) {
  const [file] = process.argv.slice(2);
  if (!file) throw new Error('Name a result: node tools/capacity/check.mjs bench-results/….json');
  const rows = compare(JSON.parse(readFileSync(file, 'utf8')));
  for (const { replicas, part, predicted, measured, off } of rows)
    console.log(
      `${replicas} × gateway, ${part}: ${predicted.toFixed(3)} predicted, ${measured.toFixed(3)} measured, ` +
        `${Math.round(off * 100)} %`,
    );
  process.exitCode = rows.every(isClose) ? 0 : 1;
}
