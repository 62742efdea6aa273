// Medians of all runs of a form and its yardsticks: what the tables and the bars are made of.
import { SCENARIOS } from '../load/scenarios.mjs';
import { median } from '../measure/rounds.mjs';

/** Not of the gateway: what asks and what is asked. */
export const OUTSIDE = ['load', 'backend'];

/** @param {{ form: object, runs: object }} measured  and what else was measured, which is passed on */
export function summaryOf({ form, runs, ...rest }) {
  const table = Object.fromEntries(
    Object.keys(SCENARIOS).map((scenario) => [
      scenario,
      Object.fromEntries(
        Object.entries(runs[scenario] ?? {}).map(([gateway, all]) => [
          gateway,
          medians(all, gateway === form.name ? form.measured : 'gateway', SCENARIOS[scenario].unit),
        ]),
      ),
    ]),
  );
  return { form: form.name, measured: form.measured, idle: form.idle, firstStartMs: form.firstStartMs, table, ...rest };
}

function medians(runs, measured, unit) {
  const parts = Object.keys(runs[0].cpuMicros);
  const others = parts.filter((part) => part !== measured && !OUTSIDE.includes(part));
  return {
    perSecond: median(runs, (run) => (unit === 'chunk' ? run.chunksPerSecond : run.perSecond)),
    p50Ms: median(runs, (run) => run.latencyMs?.p50),
    p99Ms: median(runs, (run) => run.latencyMs?.p99),
    firstTokenP50Ms: median(runs, (run) => run.firstTokenMs?.p50),
    ownMicros: parts.includes(measured) ? median(runs, (run) => run.cpuMicros[measured]) : null,
    cpuMicros: Object.fromEntries(parts.map((part) => [part, median(runs, (run) => run.cpuMicros[part])])),
    othersMicros: others.length
      ? median(runs, (run) => others.reduce((sum, part) => sum + run.cpuMicros[part], 0))
      : null,
    coreShares: {
      measured: median(runs, (run) => run.coreShares.measured),
      rest: median(runs, (run) => run.coreShares.rest),
    },
    errors: runs.reduce((sum, run) => sum + run.errors, 0),
  };
}

/** The most of the machine that other programs used in any run. */
export const foreignShare = (runs) =>
  Math.max(
    0,
    ...Object.values(runs)
      .flatMap((gateways) => Object.values(gateways).flat())
      .map((run) => run.foreign),
  );
