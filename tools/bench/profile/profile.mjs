// `npm run bench -- --profile gateway`: where the CPU of one process goes under load. Writes the profile that Chrome's
// DevTools and VS Code open, and names the functions, packages and folders that take the most CPU, ten of each.
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { startDistributed } from '../gateways/distributed.mjs';
import { startStandalone } from '../gateways/standalone.mjs';
import { startBackend } from '../load/generate.mjs';
import { SCENARIOS } from '../load/scenarios.mjs';
import { atEnd } from '../machine/take-down.mjs';
import { measure } from '../measure/cost.mjs';
import { figure, table } from '../report/print.mjs';
import { byOrigin, selfTimes } from './self-times.mjs';

const TOP = 10;
const WARM_SECONDS = 5;
const LOAD_SECONDS = 15;
const QUICK_SECONDS = 2;
const INTERVAL_MICROS = 200;

/** @returns {Promise<string>} the top ten of functions, and of packages and folders, as tables */
export async function profile({ profile: profiled, scenario, quick }, results, say) {
  const folder = mkdtempSync(join(results, 'profile-'));
  atEnd(async () => rmSync(folder, { recursive: true, force: true }));
  const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${INTERVAL_MICROS}`];
  const backend = await startBackend();
  say(`starting, with ${profiled} profiled …`);
  const form =
    profiled === 'standalone'
      ? await startStandalone(backend, { nodeOptions })
      : await startDistributed(backend, { profiled, nodeOptions });
  await measure(form, backend, SCENARIOS[scenario], { seconds: quick ? QUICK_SECONDS : WARM_SECONDS });
  say(`load: ${SCENARIOS[scenario].title} …`);
  const fromMicros = nowMicros();
  const run = await measure(form, backend, SCENARIOS[scenario], { seconds: quick ? QUICK_SECONDS : LOAD_SECONDS });
  const window = { fromMicros, toMicros: fromMicros + run.elapsed * 1e6 };
  // It writes the profile when it ends.
  await form.stop();
  const { file, times } = keep(folder, results, { profiled, scenario, window });
  const busy = times.reduce((sum, { micros }) => sum + micros, 0);
  const micros = run.cpuMicros[profiled];
  const row = (name, part) => [name, `${((part / busy) * 100).toFixed(1)} %`, figure((part / busy) * micros)];
  return [
    `${profiled}, ${SCENARIOS[scenario].title}: ${figure(run.perSecond)} requests/s, ${figure(micros)} µs of CPU a ` +
      `${SCENARIOS[scenario].unit} while it is profiled\n`,
    table(
      ['function, self time', 'share', 'µs each'],
      times.slice(0, TOP).map((each) => row(`${each.name}${each.at ? ` (${each.at})` : ''}`, each.micros)),
    ),
    '',
    table(
      ['package or folder, self time', 'share', 'µs each'],
      byOrigin(times)
        .slice(0, TOP)
        .map((each) => row(each.name, each.micros)),
    ),
    `\n${file}`,
  ].join('\n');
}

/** The clock of V8's profiles. */
const nowMicros = () => Number(process.hrtime.bigint() / 1_000n);

/** The busiest thread's profile, under a name that tells what it is of. */
function keep(folder, results, { profiled, scenario, window }) {
  const found = readdirSync(folder).map((name) => {
    const times = selfTimes(JSON.parse(readFileSync(join(folder, name), 'utf8')), window);
    return { name, times, busy: times.reduce((sum, { micros }) => sum + micros, 0) };
  });
  if (found.length === 0) throw new Error(`${profiled} wrote no profile: it was killed before it had ended`);
  const [{ name, times }] = found.sort((a, b) => b.busy - a.busy);
  const at = new Date().toISOString().replace(/[:.]/g, '-');
  const file = join(results, `${at}-${profiled}-${scenario}.cpuprofile`);
  renameSync(join(folder, name), file);
  return { file, times };
}
