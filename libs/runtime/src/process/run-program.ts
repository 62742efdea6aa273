import { ConfigError } from '../read-config';
import { configureLogging, logger } from '../logging';
import { measureProcess } from '../metrics';
import { settlesWithin } from '../timing';
import type { ProcessSettings } from '../settings/process-settings';
import { SettingsError } from '../settings/read-settings';
import { StartError } from './start-error';
import { stopSignal } from './stop-signal';
import { TakeDown } from './take-down';

/** Of what has been started when a signal comes before the start is through: nobody has been served yet. */
const TAKE_DOWN_IN_START_LIMIT_MS = 1_000;

export interface Program<S extends ProcessSettings> {
  /** The component of its log lines. */
  name: string;
  /** Shown by --help. */
  usage: string;
  /** Throws SettingsError. */
  settings(env: NodeJS.ProcessEnv): S;
  /**
   * For --validate: what else can be judged without a server. Throws ConfigError. Returns what was found valid, for
   * people.
   */
  validate(settings: S): string;
  /** Instead of running on: what an option does. Returns what it says on stdout. */
  jobs?: Record<string, (settings: S) => Promise<string>>;
  /** Options that `start` itself looks at. */
  flags?: readonly string[];
  /**
   * A signal ends the start where it stands; without this it is heeded when the start is through. For programs of which
   * a part may be left half started.
   */
  startMayBeCut?: boolean;
  /**
   * Resolves when it serves. What it has started goes to `takeDown`, which is called at the end, or when it rejects.
   */
  start(settings: S, takeDown: TakeDown, flags: ReadonlySet<string>): Promise<void>;
}

/**
 * Runs a program until a signal asks it to stop, and ends the process: exit code 0 after a clean stop or a job, 1 when
 * it cannot start, with one clear line on stderr for each reason; that of the signal (143, 130) when a job is cut off.
 * A signal is heeded from the beginning, also while it starts; further ones are the same wish again.
 */
export function runProgram<S extends ProcessSettings>(program: Program<S>, args: readonly string[]): void {
  run(program, args).then(
    (code) => {
      // After what is still on its way into a pipe. An exit all the same: nothing that was forgotten open may keep us.
      process.stdout.write('', () => process.exit(code));
    },
    (error: unknown) => {
      process.stderr.write(`${explain(error).replace(/^(?=.)/gm, 'tollgate: ')}\n`);
      process.exit(1);
    },
  );
}

async function run<S extends ProcessSettings>(program: Program<S>, args: readonly string[]): Promise<number> {
  const { name, usage, jobs = {}, flags = [] } = program;
  const known = ['--validate', '--help', '-h', ...Object.keys(jobs), ...flags];
  const unknown = args.find((arg) => !known.includes(arg));
  if (unknown !== undefined) throw new SettingsError(`There is no option ${unknown}.\n${usage}`);
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage);
    return 0;
  }
  const settings = program.settings(process.env);
  configureLogging({ level: settings.TOLLGATE_LOG_LEVEL, pretty: process.stderr.isTTY });
  if (args.includes('--validate')) {
    console.log(program.validate(settings));
    return 0;
  }
  const signal = stopSignal();
  const job = Object.keys(jobs).find((option) => args.includes(option));
  if (job !== undefined) {
    // eslint-disable-next-line no-restricted-syntax -- the job or a signal, whichever comes first
    const ended = await Promise.race([jobs[job]!(settings), signal]);
    if (typeof ended !== 'string') {
      process.stderr.write(`tollgate: ${job} was cut off (${ended.reason}).\n`);
      return ended.exitCode;
    }
    console.log(ended);
    return 0;
  }
  measureProcess();
  const takeDown = new TakeDown(name);
  const started = program.start(settings, takeDown, new Set(args)).then(() => 'started' as const);
  // eslint-disable-next-line no-restricted-syntax -- the start or a signal, whichever comes first
  const first = await Promise.race(program.startMayBeCut ? [started, signal] : [started]).catch(
    async (error: unknown) => {
      await takeDown.run();
      throw error;
    },
  );
  logger(name).info(`stopping${first === 'started' ? '' : ' before it has started'}: ${(await signal).reason}`);
  const down = takeDown.run();
  await (first === 'started' ? down : settlesWithin(TAKE_DOWN_IN_START_LIMIT_MS, down));
  return 0;
}

/** What the operator can mend is said in a line; anything else is a defect, and its stack tells more. */
function explain(error: unknown): string {
  if (error instanceof StartError || error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return String(error);
  // By its name, as this library knows no contracts: a store that answered at first and then did not.
  if (error.name === 'UnavailableError')
    return `${error.message}: it went away during the start; try again when it answers.`;
  return error.stack ?? error.message;
}
