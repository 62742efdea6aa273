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

/** The cores in use, by part, that the model predicts for a number of requests a second. */
function predictedCores(requestsPerSecond, request) {
  const chunk = Object.fromEntries(Object.keys(request).map((part) => [part, 0]));
  const costs = { cpuMicros: { request, chunk }, entryMicros: { PostgreSQL: 0 }, gatewayCores: 0, bytes: NO_BYTES };
  const { cores, redis, kafka, postgres } = capacityOf({ requestsPerSecond, tenants: 1 }, costs, AS_MEASURED);
  return { ...cores, Redis: redis.largestTenantCores, Kafka: kafka.cores, PostgreSQL: postgres.cores };
}

/**
 * What gateways use, from a run with one and a run with two: of each gateway a part of a core, whatever its share of the
 * load is, and of each request the rest. A gateway gathers requests for a turn of its event loop and for its messages.
 * Where more gateways share a load, each has as many turns and messages as before, with fewer requests in them.
 * @returns {{ perGateway: number, perRequest: number }} cores; cores of one request a second
 */
export function gatewayCosts({ idle, runs: [one, two] }) {
  const growth = two.perSecond / one.perSecond;
  const [ofOne, ofTwo] = [one, two].map((run) => coresOf(run, idle).gateway);
  const perGateway = Math.max(0, (ofTwo - ofOne * growth) / (two.replicas - one.replicas * growth));
  return { perGateway, perRequest: (ofOne - perGateway) / one.perSecond };
}

/** The cores that each part of a run uses beyond what it uses when idle, which does not grow with the requests. */
const coresOf = ({ cpuMicros, perSecond }, idle) =>
  Object.fromEntries(
    Object.entries(cpuMicros).map(([part, micros]) => [part, Math.max(0, (micros * perSecond) / 1e6 - idle[part])]),
  );

/**
 * @param {{ idle: Record<string, number>, runs: object[] }} record  runs of one, two and more gateways
 * @returns {{ replicas: number, part: string, predicted: number, measured: number, off: number }[]} cores in use, of the
 *   gateways and of all parts together, for each further number of gateways; `off` 0.1: the model predicts 10 % more.
 *   Of two gateways only all parts: their own cost is one of the two that predict the others.
 */
export function compare({ idle, runs: [one, two, ...more] }) {
  const { perGateway, perRequest } = gatewayCosts({ idle, runs: [one, two] });
  const micros = Object.entries(coresOf(one, idle)).map(([part, cores]) => [part, (cores * 1e6) / one.perSecond]);
  const unit = { ...Object.fromEntries(micros), gateway: perRequest * 1e6 };
  return [two, ...more].flatMap((run) => {
    const predicted = predictedCores(run.perSecond, unit);
    predicted.gateway += perGateway * run.replicas;
    const measured = coresOf(run, idle);
    const row = (part, expected, found) => ({
      ...{ replicas: run.replicas, part, predicted: expected, measured: found, off: expected / found - 1 },
    });
    const parts = Object.keys(measured);
    return [
      ...(run === two ? [] : [row('gateway', predicted.gateway, measured.gateway)]),
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
