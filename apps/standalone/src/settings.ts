import { BillingSettings } from '@tollgate/billing';
import { ConsoleSecret, ConsoleSettings } from '@tollgate/console';
import {
  FormerSecretSettings,
  IdempotencySecretsSettings,
  IdempotencySettings,
  OPERATOR_SECRET_MIN_BITS,
  OperatorHostsSettings,
  OperatorPort,
  OperatorSecret,
  PublicSettings,
  WorkersCount,
} from '@tollgate/gateway';
import { MeteringSettings } from '@tollgate/metering';
import { OptionalDatabaseSettings } from '@tollgate/postgres';
import {
  ConfigFileSettings,
  ConfigSecretsSettings,
  DrainSettings,
  entropyBits,
  fileProblem,
  Flag,
  MetricsSettings,
  Optional,
  Path,
  portConflicts,
  ProcessSettings,
  readSettings as read,
  Setting,
  SettingsError,
  tooEasy,
  TracingSettings,
  TrustedProxiesSettings,
  writeNewFile,
} from '@tollgate/runtime';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** Where the operator API listens. */
export const OPERATOR_HOST = '127.0.0.1';
const MAX_PORT = 65_535;
/** The default is at most this many: PostgreSQL needs the other cores. */
const MAX_WORKERS_BY_DEFAULT = 4;
const CONSOLE_SECRET_MIN_BITS = 80;
const IDEMPOTENCY_SECRET_MIN_BITS = 80;
/** The bits of a file's mode for its group and all others. */
const OTHERS = 0o077;

class OwnSettings {
  /** Any free port if TOLLGATE_PORT is 0. */
  @Optional() @OperatorPort('`TOLLGATE_PORT` + 1') TOLLGATE_OPERATOR_PORT?: number;
  @Optional() @OperatorSecret('made on the first start') TOLLGATE_OPERATOR_SECRET?: string;
  @Setting('The embedded PostgreSQL, the operator secret, and `operator.json` for the `tollgate` command.')
  @Path('the path of a folder')
  TOLLGATE_DATA_DIR: string = '.tollgate';
  @Setting('Whether a demo tenant is created when there is no tenant yet.')
  @Flag()
  TOLLGATE_DEMO: boolean = true;
  @Setting('Whether the web console is served at `/console` of the public port.')
  @Flag()
  TOLLGATE_CONSOLE: boolean = true;
  /** Processes on one database need the same. */
  @Optional() @ConsoleSecret('made on the first start') TOLLGATE_CONSOLE_SECRET?: string;
  @Optional() @WorkersCount('cores less one, 1 to 4') TOLLGATE_WORKERS?: number;
}

/** All settings of the standalone form. */
export const SETTINGS = [
  ProcessSettings,
  MetricsSettings,
  PublicSettings,
  TrustedProxiesSettings,
  FormerSecretSettings,
  OperatorHostsSettings,
  ConfigFileSettings,
  ConfigSecretsSettings,
  OptionalDatabaseSettings,
  IdempotencySecretsSettings,
  IdempotencySettings,
  DrainSettings,
  BillingSettings,
  MeteringSettings,
  ConsoleSettings,
  TracingSettings,
  OwnSettings,
] as const;

/** The standalone's settings from the environment. Names and defaults: docs/operating/settings.md. */
export type StandaloneSettings = ReturnType<typeof readSettings>;

/** Reads and validates the environment. Throws SettingsError, whose message never has a secret's value. */
export function readSettings(env: NodeJS.ProcessEnv) {
  const settings = read(env, SETTINGS);
  const port = settings.TOLLGATE_PORT;
  const operatorPort = settings.TOLLGATE_OPERATOR_PORT ?? (port === 0 ? 0 : port + 1);
  if (operatorPort > MAX_PORT)
    throw new SettingsError(`There is no port after ${port} for the operator API: set TOLLGATE_OPERATOR_PORT.`);
  const conflicts = portConflicts([
    { setting: 'TOLLGATE_PORT', host: settings.TOLLGATE_HOST, port },
    { setting: 'TOLLGATE_OPERATOR_PORT', host: OPERATOR_HOST, port: operatorPort },
  ]);
  if (conflicts.length > 0) throw new SettingsError(conflicts.join('\n'));
  return {
    ...settings,
    TOLLGATE_OPERATOR_PORT: operatorPort,
    TOLLGATE_WORKERS: settings.TOLLGATE_WORKERS ?? workersOn(availableParallelism()),
    TOLLGATE_CONFIG: resolve(settings.TOLLGATE_CONFIG),
    TOLLGATE_DATA_DIR: resolve(settings.TOLLGATE_DATA_DIR),
  };
}

/** One core is for the books and PostgreSQL. */
const workersOn = (cores: number): number => Math.min(Math.max(cores - 1, 1), MAX_WORKERS_BY_DEFAULT);

type DataSettings = Pick<StandaloneSettings, 'TOLLGATE_DATA_DIR' | 'TOLLGATE_OPERATOR_SECRET'>;

/**
 * The operator API's secret: the given one, or one that is made on the first start and kept in the data directory.
 * Throws SettingsError if that cannot be written.
 */
export function operatorSecret({
  TOLLGATE_OPERATOR_SECRET: given,
  TOLLGATE_DATA_DIR: directory,
}: DataSettings): string {
  return keptSecret(given, directory, 'operator.secret', OPERATOR_SECRET_MIN_BITS);
}

/** The console's secret, in the same way. */
export function consoleSecret({
  TOLLGATE_CONSOLE_SECRET: given,
  TOLLGATE_DATA_DIR: directory,
}: Pick<StandaloneSettings, 'TOLLGATE_DATA_DIR' | 'TOLLGATE_CONSOLE_SECRET'>): string {
  return keptSecret(given, directory, 'console.secret', CONSOLE_SECRET_MIN_BITS);
}

/** The secrets that encrypt the answers kept for repeats, in the same way. */
export function idempotencySecrets({
  TOLLGATE_IDEMPOTENCY_SECRETS: given,
  TOLLGATE_DATA_DIR: directory,
}: Pick<StandaloneSettings, 'TOLLGATE_DATA_DIR' | 'TOLLGATE_IDEMPOTENCY_SECRETS'>): string {
  return keptSecret(given, directory, 'idempotency.secret', IDEMPOTENCY_SECRET_MIN_BITS);
}

function keptSecret(given: string | undefined, directory: string, name: string, minBits: number): string {
  try {
    makeDirectory(directory);
    const file = join(directory, name);
    if (given !== undefined) {
      accessSync(directory, constants.W_OK);
      return given;
    }
    if (!existsSync(file)) makeSecret(file);
    if (statSync(file).mode & OTHERS) throw new SettingsError(`Other users can read ${file}. Run: chmod 600 ${file}`);
    const kept = readFileSync(file, 'utf8').trim();
    if (entropyBits(kept) < minBits) throw new SettingsError(tooEasy(file, minBits));
    return kept;
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    throw new SettingsError(
      `The data directory ${directory} cannot be written (${fileProblem(error)}): correct that, or choose another ` +
        'with TOLLGATE_DATA_DIR.',
    );
  }
}

/** Another process may make it first. Both then use that one. */
function makeSecret(file: string): void {
  try {
    writeNewFile(file, `${randomBytes(32).toString('base64url')}\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** `recursive` never returns on a folder that a special file system refuses, such as one below /proc. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path);
}

/** Here the `tollgate` command finds this instance. */
export function writeOperatorFile(directory: string, url: string, secret: string): void {
  writeFileSync(join(directory, 'operator.json'), `${JSON.stringify({ url, secret })}\n`, { mode: 0o600 });
}
