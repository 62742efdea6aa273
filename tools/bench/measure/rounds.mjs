// Rounds in which every gateway is asked every scenario in turn, so that what else the machine does falls on all.
import { SCENARIOS } from '../load/scenarios.mjs';
import { measure } from './cost.mjs';

/** Share of the machine that others may use, and the figures still be believed. */
export const CALM = 0.05;

/**
 * @param {{ gateways: object[], backend: object, rounds: number, seconds: number, say: (line: string) => void }}
 * options
 * @returns {Promise<Record<string, Record<string, object[]>>>} the runs of each scenario and gateway
 */
export async function playRounds({ gateways, backend, rounds, seconds, say }) {
  const runs = {};
  for (let round = 1; round <= rounds; round++) {
    // The order alternates, so that no gateway always follows the same one.
    const order = round % 2 ? gateways : [...gateways].reverse();
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      for (const gateway of order.filter((each) => each.name !== scenario.not)) {
        const run = await measure(gateway, backend, scenario, { seconds });
        say(`round ${round}/${rounds}: ${scenario.title}, ${gateway.name}: ${shown(run, scenario)}`);
        ((runs[name] ??= {})[gateway.name] ??= []).push(run);
      }
    }
  }
  return runs;
}

function shown(run, { unit }) {
  const speed = unit === 'chunk' ? `${Math.round(run.chunksPerSecond)} chunks/s` : `${Math.round(run.perSecond)}/s`;
  const errors = run.errors > 0 ? `; ${run.errors} errors, the first: ${run.firstError.split('\r\n')[0]}` : '';
  const foreign = run.foreign > CALM ? `; other programs used ${Math.round(run.foreign * 100)} % of the machine` : '';
  return `${speed}, p50 ${run.latencyMs?.p50 ?? '–'} ms${errors}${foreign}`;
}

/** The middle of what `read` finds in these runs; null where it finds nothing. */
export function median(runs, read) {
  const found = (runs ?? [])
    .map(read)
    .filter((value) => Number.isFinite(value))
    .sort((a, b) => a - b);
  if (found.length === 0) return null;
  const middle = found.length >> 1;
  return found.length % 2 ? found[middle] : (found[middle - 1] + found[middle]) / 2;
}
