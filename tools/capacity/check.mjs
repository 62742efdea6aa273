// Compares the model with a run of `npm run bench -- --replicas`: what one gateway costs there predicts what two and
// four cost. A request costs a gateway more if it gets fewer of them, because it gathers fewer for a turn of its event
// loop. So the cost is that of one gateway at the rate of one of two or four.
// node tools/capacity/check.mjs <bench-results/….json>
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
  const costs = { cpuMicros: { request, chunk }, entryMicros: { PostgreSQL: 0 }, bytes: NO_BYTES };
  const { cores, redis, kafka, postgres } = capacityOf({ requestsPerSecond, tenants: 1 }, costs, AS_MEASURED);
  return { ...cores, Redis: redis.largestTenantCores, Kafka: kafka.cores, PostgreSQL: postgres.cores };
}

/**
 * @param {{ idle: Record<string, number>, runs: object[] }} record  the first run is of one gateway
 * @returns {{ replicas: number, part: string, predicted: number, measured: number, off: number }[]} cores in use, of
 * the
 *   gateways and of all parts together, for each further number of gateways; `off` 0.1: the model predicts 10 % more
 */
export function compare({ idle, runs: [one, ...more] }) {
  // The CPU of an idle part does not grow with the requests.
  const net = ({ cpuMicros, perSecond }) =>
    Object.fromEntries(
      Object.entries(cpuMicros).map(([part, micros]) => [part, Math.max(0, micros - (idle[part] * 1e6) / perSecond)]),
    );
  const unit = net(one);
  return more.flatMap((run) => {
    const predicted = predictedCores(run.perSecond, { ...unit, gateway: net(run.share).gateway });
    const measured = Object.entries(net(run)).map(([part, micros]) => [part, (run.perSecond * micros) / 1e6]);
    const row = (part, expected, found) => ({
      ...{ replicas: run.replicas, part, predicted: expected, measured: found, off: expected / found - 1 },
    });
    return [
      row('gateway', predicted.gateway, Object.fromEntries(measured).gateway),
      row(ALL, sum(measured.map(([part]) => predicted[part])), sum(measured.map(([, cores]) => cores))),
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
