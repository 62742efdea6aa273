// The options of `npm run bench`, checked before anything is started.
import { parseArgs } from 'node:util';
import { SetupError } from '../setup/prepare.mjs';
import { SCENARIOS } from './load/scenarios.mjs';

const FORMS = ['standalone', 'distributed', 'both'];
const PROFILED = ['standalone', 'gateway', 'metering', 'billing', 'auth'];
const MAX_ROUNDS = 100;
const MAX_SECONDS = 3_600;
const MAX_EVENTS = 100_000_000;

export const USAGE = `Usage: npm run bench [-- --form standalone|distributed|both] [-- --quick] …
  --form <form>          what is measured (both; without a Docker engine the standalone form alone)
  --rounds <number>      interleaved rounds, of which medians are taken (5)
  --seconds <number>     of each scenario in a round (4)
  --quick                one round of one second each: a smoke test, no figures
  --peer <URL>,<KEY>     a row for another gateway with OpenAI's API, at its base URL (…/v1); may be given several times
  --backend-port <port>  the port of the model backend, for the peers to be set up for (any free port)
  --profile <process>    instead: where the CPU of ${PROFILED.join(', ')} goes
  --scenario <name>      of --profile: ${Object.keys(SCENARIOS).join(', ')} (plain32)
  --soak <time>          instead: full load for this long (10m, 90s); what grows, and the books at the end
  --replicas             instead: what a request costs with one, two and four gateways of the distributed form
  --growth <events>      instead: the standalone form with many tenants, and with this many recorded events
  --books <events>       instead: queries, the console and the export of the standalone form with this many events
  --data <directory>     of --books: keeps the books there for the next run
  --hostile              instead: the worst request bodies; with --seconds, --fuzz-rounds, --seed
docs/performance.md says what is measured and how it is read.`;

/** @throws {SetupError} with what is wrong, and the usage */
export function readOptions(args) {
  const values = parse(args);
  const { quick = false, form = 'both', profile, scenario = 'plain32', soak, growth, books, data } = values;
  if (!FORMS.includes(form)) refuse(`--form ${form} must be one of ${FORMS.join(', ')}`);
  if (profile !== undefined && !PROFILED.includes(profile))
    refuse(`--profile ${profile} must be one of ${PROFILED.join(', ')}`);
  if (SCENARIOS[scenario] === undefined)
    refuse(`--scenario ${scenario} must be one of ${Object.keys(SCENARIOS).join(', ')}`);
  return {
    help: values.help === true,
    form,
    replicas: values.replicas === true,
    isFormGiven: values.form !== undefined,
    quick,
    rounds: whole('rounds', values.rounds ?? (quick ? '1' : '5'), MAX_ROUNDS),
    seconds: whole('seconds', values.seconds ?? (quick ? '1' : '4'), MAX_SECONDS),
    backendPort: values['backend-port'] === undefined ? 0 : whole('backend-port', values['backend-port'], 65_535),
    peers: (values.peer ?? []).map(peerOf),
    profile,
    scenario,
    soakSeconds: soak === undefined ? undefined : secondsOf(soak),
    growthEvents: growth === undefined ? undefined : whole('growth', growth, MAX_EVENTS),
    booksEvents: books === undefined ? undefined : whole('books', books, MAX_EVENTS),
    data,
  };
}

function parse(args) {
  const text = { type: 'string' };
  const flag = { type: 'boolean' };
  const options = {
    ...{
      form: text,
      rounds: text,
      seconds: text,
      'backend-port': text,
      profile: text,
      scenario: text,
      soak: text,
      growth: text,
      books: text,
      data: text,
    },
    ...{ quick: flag, replicas: flag, help: { type: 'boolean', short: 'h' }, peer: { type: 'string', multiple: true } },
  };
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    return refuse(error.message);
  }
}

function whole(name, text, max) {
  if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= max) return Number(text);
  return refuse(`--${name} ${text} must be a whole number from 1 to ${max}`);
}

function secondsOf(text) {
  const [, number, unit] = /^([1-9]\d{0,3})(s|m)$/.exec(text) ?? [];
  if (number === undefined) return refuse(`--soak ${text} must be a time such as 10m or 90s`);
  return Number(number) * (unit === 'm' ? 60 : 1);
}

function peerOf(text) {
  const [, url, key] = /^(https?:\/\/[^,\s]+),(\S+)$/.exec(text) ?? [];
  return url === undefined
    ? refuse(`--peer ${text} must be the base URL of a gateway, a comma and a key`)
    : { url, key };
}

function refuse(why) {
  throw new SetupError(`${why}\n${USAGE}`);
}
