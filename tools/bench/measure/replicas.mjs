// The same load on one, two and four gateways: what a request costs each part may not depend on how many there are.
import { PLAIN } from '../load/scenarios.mjs';
import { idleShares, measure } from './cost.mjs';
import { median } from './rounds.mjs';

export const REPLICAS = [1, 2, 4];
/** The connections of each gateway, so that it gathers as many requests for a call of Redis as it does alone. */
const CONNECTIONS = 32;
/** Numbers of requests and not times, so that a slow machine compiles as much of the code as a fast one. */
const FULL = { warm: 8_000, measured: 8_000, idleSeconds: 4 };
/** The same with --quick. */
const QUICK = { warm: 2_500, measured: 1_500, idleSeconds: 3 };
/** Far more than a run takes. */
const LIMIT_SECONDS = 120;

/** `count` of the gateways, in each round others: they differ in what they have compiled. */
const turns = (urls, round, count) => Array.from({ length: count }, (_, index) => urls[(round + index) % urls.length]);

/**
 * The numbers of replicas take turns in each round, so that what else the machine does falls on all. Gateways that get
 * no load stay: they are idle, and consume their share of the balance updates.
 * @returns {Promise<{ idle: Record<string, number>, runs: object[] }>} `idle`: shares of a core; of each number of
 *   replicas the medians over the rounds: requests a second, and microseconds of CPU of a request by part
 */
export async function measureReplicas(form, backend, { rounds, quick, say }) {
  const sizes = quick ? QUICK : FULL;
  const scenario = (count) => ({ connections: CONNECTIONS * count, body: PLAIN, unit: 'request' });
  // One by one: a gateway is only warm when it has served as much as the others.
  for (const [index, url] of form.urls.entries()) {
    say(`warming up gateway ${index + 1} …`);
    await measure({ ...form, urls: [url] }, backend, scenario(1), { seconds: LIMIT_SECONDS, count: sizes.warm });
  }
  form.idle = await idleShares(form.parts, sizes.idleSeconds);
  const runs = new Map(REPLICAS.map((count) => [count, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const count of round % 2 ? REPLICAS : [...REPLICAS].reverse()) {
      const run = await measure({ ...form, urls: turns(form.urls, round, count) }, backend, scenario(count), {
        seconds: LIMIT_SECONDS,
        count: sizes.measured,
      });
      const costs = Object.entries(run.cpuMicros).map(([part, micros]) => `${part} ${Math.round(micros)}`);
      say(`round ${round}/${rounds}: ${count} × gateway: ${Math.round(run.perSecond)}/s, µs: ${costs.join(', ')}`);
      runs.get(count).push(run);
    }
  }
  const parts = Object.keys(form.parts);
  return {
    idle: form.idle,
    runs: REPLICAS.map((replicas) => {
      const all = runs.get(replicas);
      const micros = (part) => Number(median(all, (run) => run.cpuMicros[part]).toFixed(1));
      return {
        replicas,
        requests: all.reduce((sum, run) => sum + run.requests, 0),
        errors: all.reduce((sum, run) => sum + run.errors, 0),
        perSecond: Math.round(median(all, (run) => run.perSecond)),
        cpuMicros: Object.fromEntries(parts.map((part) => [part, micros(part)])),
      };
    }),
  };
}
