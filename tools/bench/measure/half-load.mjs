// Latency at half of what the form can do, and how late its debits come then.
import { SCENARIOS } from '../load/scenarios.mjs';
import { figure } from '../report/print.mjs';
import { measure } from './cost.mjs';
import { debitLagMs } from './database.mjs';
import { median } from './rounds.mjs';

/** @returns {Promise<{ ratePerSecond: number, addedP99Ms: number, debitLagMs: object, runs: object }>} */
export async function halfLoad({ form, direct, backend, ratePerSecond, rounds, seconds, say }) {
  const runs = { direct: [], form: [] };
  const lags = [];
  for (let round = 1; round <= rounds; round++) {
    const scenario = SCENARIOS.plain32;
    runs.direct.push(await measure(direct, backend, scenario, { seconds, ratePerSecond }));
    runs.form.push(await measure(form, backend, scenario, { seconds, ratePerSecond }));
    lags.push(await debitLagMs(form, seconds));
    const { p99 } = runs.form.at(-1).latencyMs;
    say(`half load ${round}/${rounds}: ${ratePerSecond}/s, p99 ${p99} ms, debit p99 ${figure(lags.at(-1).p99)} ms`);
  }
  const p99 = (name) => median(runs[name], (run) => run.latencyMs?.p99);
  return {
    ratePerSecond,
    addedP99Ms: p99('form') - p99('direct'),
    debitLagMs: { p50: median(lags, (lag) => lag.p50), p99: median(lags, (lag) => lag.p99) },
    runs,
  };
}
