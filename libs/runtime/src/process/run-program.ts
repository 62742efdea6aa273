import { readFileSync } from 'node:fs';
import { ConfigError } from '../config/read-config';
import { configureLogging, logger } from '../logging/logging';
import { measureProcess } from '../metrics/metrics';
import { settlesWithin } from '../timing';
import type { ProcessSettings } from '../settings/process-settings';
import { SettingsError } from '../settings/read-settings';
import { unknownSettings } from '../settings/unknown-settings';
import { isWorker } from '../workers/as-worker';
import { StartError } from './start-error';
import { stopSignal } from './stop-signal';
import { TakeDown } from './take-down';

/** The time limit for taking down an unfinished start after a signal. Nobody has been served yet. */
const TAKE_DOWN_IN_START_LIMIT_MS = 1_000;

export interface Program<S extends ProcessSettings> {
  /** The component of its log lines. */
  name: string;
  /** Shown by --help. */
  usage: string;
  /** Throws SettingsError. */
  settings(env: NodeJS.ProcessEnv): S;
  /**
   * For --validate: checks what can be checked without a server. Throws ConfigError. Returns a sentence for the user.
   */
  validate(settings: S): string;
  /** Runs an option instead of the program. Returns its output on stdout. */
  jobs?: Record<string, (settings: S) => Promise<string>>;
  /** Options that `start` itself reads. */
  flags?: readonly string[];
  /**
   * True: a signal interrupts the start. Otherwise it takes effect after the start. For programs that may leave a part
   * half started.
   */
  startMayBeCut?: boolean;
  /**
   * Resolves when the program serves. Started parts register with `takeDown`, which is called at the end, or when it
   * rejects.
   */
  start(settings: S, takeDown: TakeDown, flags: ReadonlySet<string>): Promise<void>;
}

/**
 * Runs a program until a signal stops it, and ends the process. Exit codes: 0 after a clean stop or a job; 1 when it
 * cannot start, with one line on stderr for each reason; the signal's (143, 130) when a job is interrupted.
 * Signals count from the beginning, also during the start. Further signals are ignored.
 */
export function runProgram<S extends ProcessSettings>(program: Program<S>, args: readonly string[]): void {
  run(program, args).then(
    (code) => {
      // After the last output has reached its pipe. An explicit exit, because forgotten handles must not keep the
      // process alive.
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
  if (!isWorker()) warnOfUnknownSettings(name, settings);
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
      process.stderr.write(`tollgate: ${job} was interrupted (${ended.reason}).\n`);
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

/** One warning for all variables `TOLLGATE_…` that nothing reads, such as misspelled ones. */
function warnOfUnknownSettings(name: string, settings: object): void {
  const { TOLLGATE_CONFIG: file } = settings as { TOLLGATE_CONFIG?: string };
  const unknown = unknownSettings(process.env, () => (file === undefined ? '' : textOf(file)));
  if (unknown !== undefined) logger(name).warn(unknown);
}

/** Empty if it cannot be read: then the start itself says so. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** One line for an error that the operator can fix. Any other error is a defect and is shown with its stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigError && error.unreadable)
    return `${error.message}: set TOLLGATE_CONFIG to the configuration file`;
  if (error instanceof StartError || error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return String(error);
  // By its name, because this library does not depend on the contracts: a store answered first and then stopped.
  if (error.name === 'UnavailableError')
    return `${error.message}: it stopped answering during the start. Try again when it answers.`;
  return error.stack ?? error.message;
}
