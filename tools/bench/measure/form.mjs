// Everything that is measured of one form, in order. Measurements that need a warm process come after the rounds.
import { SCENARIOS } from '../load/scenarios.mjs';
import { pssBytes, rssBytes } from '../machine/usage.mjs';
import { foreignShare, summaryOf } from '../report/summary.mjs';
import { countAsOurs, idleShares, measure } from './cost.mjs';
import { databaseFacts, storeCost } from './database.mjs';
import { halfLoad } from './half-load.mjs';
import { memoryPerStream } from './open-streams.mjs';
import { median, playRounds } from './rounds.mjs';

const WARM_SECONDS = 8;
const IDLE_SECONDS = 4;
const STORE_SECONDS = 10;
const OPEN_STREAMS = 1_000;
const OPEN_SECONDS = 30;
/** The same with --quick. */
const QUICK = { warmSeconds: 2, idleSeconds: 1, storeSeconds: 4, openStreams: 100, openSeconds: 6 };
const FULL = {
  warmSeconds: WARM_SECONDS,
  idleSeconds: IDLE_SECONDS,
  storeSeconds: STORE_SECONDS,
  openStreams: OPEN_STREAMS,
  openSeconds: OPEN_SECONDS,
};

/** @returns the summary of the form: see report/summary.mjs */
export async function measureForm({ form, yardsticks, backend, rounds, seconds, quick, say }) {
  const sizes = quick ? QUICK : FULL;
  const gateways = [...yardsticks, form];
  for (const gateway of gateways) countAsOurs(gateway.parts);
  say(`${form.name}: warming up …`);
  for (const gateway of gateways) await measure(gateway, backend, SCENARIOS.plain32, { seconds: sizes.warmSeconds });
  await measure(form, backend, SCENARIOS.streams, { seconds: sizes.warmSeconds });
  form.idle = await idleShares(form.parts, sizes.idleSeconds);

  const runs = await playRounds({ gateways, backend, rounds, seconds, say });
  const memory = {
    afterLoadBytes: rssBytes(form.parts[form.measured]),
    postgresBytes: pssBytes(form.parts.PostgreSQL),
  };
  const store = {};
  for (const scenario of ['plain1', 'plain32']) {
    say(`what a request takes of PostgreSQL: ${SCENARIOS[scenario].title}`);
    store[scenario] = await storeCost(form, {
      connections: SCENARIOS[scenario].connections,
      seconds: sizes.storeSeconds,
    });
  }
  const perSecond = median(runs.plain32[form.name], (run) => run.perSecond);
  const half = await halfLoad({
    form,
    direct: yardsticks[0],
    backend,
    ratePerSecond: Math.max(1, Math.floor(perSecond / 2)),
    rounds,
    seconds: seconds * 2,
    say,
  });
  say(`memory of ${sizes.openStreams} open streams …`);
  memory.perStream = await memoryPerStream(form, { count: sizes.openStreams, seconds: sizes.openSeconds });
  const facts = await databaseFacts(form);
  return summaryOf({
    form,
    runs,
    memory,
    store,
    halfLoad: half,
    foreign: foreignShare(runs),
    database: facts,
    raw: runs,
  });
}
