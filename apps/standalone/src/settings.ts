import 'reflect-metadata';
import { plainToInstance, Transform } from 'class-transformer';
import { IsBoolean, IsIn, IsInt, IsOptional, IsUrl, Length, Matches, Max, Min, validateSync } from 'class-validator';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const toNumber = Transform(({ value }: { value: unknown }) =>
  typeof value === 'string' && value.trim() !== '' ? Number(value) : value,
);
const toBoolean = Transform(({ value }: { value: unknown }) =>
  value === 'true' ? true : value === 'false' ? false : value,
);

const MAX_PORT = 65_535;

/** The standalone's settings, from the environment. Names and defaults: docs/operating.md. */
class Settings {
  @toNumber @IsInt() @Min(0) @Max(MAX_PORT) TOLLGATE_PORT: number = 8080;
  /** The next port after TOLLGATE_PORT when it is not set; any when that is 0. */
  @IsOptional() @toNumber @IsInt() @Min(0) @Max(MAX_PORT) TOLLGATE_OPERATOR_PORT?: number;
  @Length(1, 255) TOLLGATE_HOST: string = '127.0.0.1';
  @Length(1, 4096) TOLLGATE_CONFIG: string = 'tollgate.yaml';
  @Length(1, 4096) TOLLGATE_DATA_DIR: string = '.tollgate';
  @IsOptional()
  @IsUrl(
    { protocols: ['postgres', 'postgresql'], require_protocol: true, require_tld: false, require_host: false },
    { message: '$property must be a URL such as postgres://user:password@host:5432/database' },
  )
  DATABASE_URL?: string;
  /** How long running requests may go on when it stops; then they are ended, settled at what was delivered. */
  @toNumber @IsInt() @Min(0) @Max(3_600) TOLLGATE_DRAIN_SECONDS: number = 30;
  @toBoolean @IsBoolean({ message: '$property must be true or false' }) TOLLGATE_DEMO: boolean = true;
  @IsIn(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']) TOLLGATE_LOG_LEVEL: string = 'info';
  @IsOptional()
  @Matches(/^[\x21-\x7e]{16,256}$/, { message: '$property must be 16 to 256 printable characters' })
  TOLLGATE_OPERATOR_SECRET?: string;
}

export interface StandaloneSettings {
  host: string;
  port: number;
  operatorPort: number;
  configFile: string;
  dataDirectory: string;
  databaseUrl: string | null;
  drainTimeoutMs: number;
  demo: boolean;
  logLevel: string;
  operatorSecret: string | null;
}

/** Settings that cannot be used; `message` names each with the cure. */
export class SettingsError extends Error {
  readonly operator = true;
}

const EMPTY_IS_UNSET = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));

/** Reads and checks the environment. Throws SettingsError; a secret's value is never in its message. */
export function readSettings(env: NodeJS.ProcessEnv): StandaloneSettings {
  const names = Object.keys(new Settings()).concat(
    'TOLLGATE_OPERATOR_PORT',
    'DATABASE_URL',
    'TOLLGATE_OPERATOR_SECRET',
  );
  const known = Object.fromEntries(Object.entries(EMPTY_IS_UNSET(env)).filter(([name]) => names.includes(name)));
  const settings = plainToInstance(Settings, known, { exposeDefaultValues: true });
  const problems = validateSync(settings, { stopAtFirstError: true }).flatMap((error) =>
    Object.values(error.constraints ?? {}),
  );
  if (problems.length > 0) throw new SettingsError(problems.join('\n'));
  const port = settings.TOLLGATE_PORT;
  const operatorPort = settings.TOLLGATE_OPERATOR_PORT ?? (port === 0 ? 0 : port + 1);
  if (operatorPort > MAX_PORT) {
    throw new SettingsError(`There is no port after ${port} for the operator API: set TOLLGATE_OPERATOR_PORT.`);
  }
  return {
    host: settings.TOLLGATE_HOST,
    port,
    operatorPort,
    configFile: resolve(settings.TOLLGATE_CONFIG),
    dataDirectory: resolve(settings.TOLLGATE_DATA_DIR),
    databaseUrl: settings.DATABASE_URL ?? null,
    drainTimeoutMs: settings.TOLLGATE_DRAIN_SECONDS * 1_000,
    demo: settings.TOLLGATE_DEMO,
    logLevel: settings.TOLLGATE_LOG_LEVEL,
    operatorSecret: settings.TOLLGATE_OPERATOR_SECRET ?? null,
  };
}

/** The operator API's secret: the one given, or one made on the first start and kept in the data directory. Throws SettingsError where that cannot be written. */
export function operatorSecret({ operatorSecret: given, dataDirectory }: StandaloneSettings): string {
  try {
    makeDirectory(dataDirectory);
    const file = join(dataDirectory, 'operator.secret');
    if (given !== null) {
      accessSync(dataDirectory, constants.W_OK);
      return given;
    }
    if (!existsSync(file)) writeFileSync(file, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SettingsError(
      `The data directory ${dataDirectory} cannot be written (${code}): choose another with TOLLGATE_DATA_DIR, or mend its rights.`,
    );
  }
}

/** Not `recursive`: that never returns for a folder that a special file system does not let be made, such as one below /proc. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path);
}

/** Where the `tollgate` command finds this instance. */
export function writeOperatorFile({ dataDirectory }: StandaloneSettings, url: string, secret: string): void {
  writeFileSync(join(dataDirectory, 'operator.json'), `${JSON.stringify({ url, secret })}\n`, { mode: 0o600 });
}
