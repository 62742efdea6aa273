// `npm run bench -- --books 10000000`: what people and programs ask of the standalone form with ten million events
// behind it. Queries and requests are compared with the same on small books, in the same rounds. Then come every list
// and chart of the console, and the export.
import { loadavg } from 'node:os';
import { median } from '../measure/rounds.mjs';
import { figure, table } from '../report/print.mjs';
import { openBooks } from './books.mjs';
import { consoleCalls } from './console-calls.mjs';
import { exports } from './export.mjs';
import { costs } from './growth.mjs';
import { signedInOperator } from './people.mjs';

export const SMALL_EVENTS = 10_000;
const CALLS = 50;
const CALLS_TO_WARM_UP = 2;
const CONSOLE_BAR_MS = 300;
const FIGURES = {
  'Node µs a request': (round) => round[0].nodeMicros,
  'PostgreSQL µs a request': (round) => round[0].postgresMicros,
  'GET /usage p50 ms': (round) => round[1].p50,
  'GET /usage p99 ms': (round) => round[1].p99,
  'GET /billing p50 ms': (round) => round[2].p50,
  'GET /billing p99 ms': (round) => round[2].p99,
};

/**
 * @param {{ form: object, directory: string, events: number }} large
 * @param {{ form: object, directory: string, events: number }} small
 * @returns {Promise<string>} the tables, as Markdown
 */
export async function longHistory(large, small, { rounds, seconds, say }) {
  for (const books of [small, large]) books.tenants = (await openBooks(books.form, { ...books, say })).tenants;
  const texts = [`Load of the machine before: ${shown(loadavg())}.`];
  texts.push(await compared([small, large], { rounds, seconds, say }));
  say('the console …');
  texts.push(await consoleTimes(large));
  texts.push(await exports(large.form, { ...large, say }));
  texts.push(`Load of the machine after: ${shown(loadavg())}.`);
  return texts.join('\n\n');
}

async function compared(all, { rounds, seconds, say }) {
  for (const books of all) await costs(books.form, books.tenants, seconds);
  const runs = all.map(() => []);
  for (let round = 1; round <= rounds; round++) {
    say(`round ${round} of ${rounds} …`);
    for (const [i, { form, tenants }] of all.entries()) runs[i].push(await costs(form, tenants, seconds));
  }
  const rows = Object.entries(FIGURES).map(([name, read]) => {
    const [few, many] = runs.map((of) => median(of, read));
    return [name, figure(few), figure(many), figure(many / few)];
  });
  return [
    table(['medians of the rounds', ...all.map(({ events }) => `${events} events`), 'ratio'], rows),
    'Bars: a request at most 1.2 ×; the p99 of queries at most 1.5 ×.',
  ].join('\n\n');
}

async function consoleTimes({ form, tenants }) {
  const operator = await signedInOperator(form);
  const rows = [];
  for (const [name, path] of Object.entries(await consoleCalls(operator, tenants[0]))) {
    const values = [];
    for (let call = 0; call < CALLS + CALLS_TO_WARM_UP; call++) {
      const { ms } = await operator.get(path);
      if (call >= CALLS_TO_WARM_UP) values.push(ms);
    }
    values.sort((a, b) => a - b);
    const [p50, p95, most] = [0.5, 0.95, 1].map((share) => values[Math.min(CALLS - 1, Math.floor(CALLS * share))]);
    rows.push([name, figure(p50), figure(p95), figure(most), p95 <= CONSOLE_BAR_MS ? 'met' : 'not met']);
  }
  return table(['console', 'p50 ms', 'p95 ms', 'most', `p95 ≤ ${CONSOLE_BAR_MS}`], rows);
}

const shown = (load) => load.map((value) => value.toFixed(1)).join(', ');
