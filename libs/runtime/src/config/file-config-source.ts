import { statSync } from 'node:fs';
import { secretsFileOf } from './config-secrets';
import { logger } from '../logging/logging';
import { Counter, metrics } from '../metrics/metrics';
import { ConfigError, readConfigFile } from './read-config';
import { ConfigSource, type ConfigCheck, type TollgateConfig } from './tollgate-config';

const POLL_INTERVAL_MS = 1_000;

const reloads = new Counter({
  name: 'tollgate_config_reloads_total',
  help: 'Changes of tollgate.yaml by result: accepted, refused (the old version stays in force)',
  labelNames: ['result'],
  registers: [metrics],
});

/** What a process has decided about the files. Plain data: another process of the same program may begin with it. */
export interface DecidedConfig {
  /** The configuration in force. */
  current: TollgateConfig;
  /** The files when the last version was accepted or refused: `versionOf` each of them, by its path. */
  seen: Versions;
}

type Versions = Record<string, string>;

/**
 * `tollgate.yaml`. Read at construction (throws ConfigError) and again when it changes, or a file with its secrets:
 * that of TOLLGATE_CONFIG_SECRETS_FILE, and those that it names by `file:`. An invalid version is refused with a log
 * line for each problem, and the old one stays in force. The file is polled, because notifications miss a file that an
 * editor or a ConfigMap replaces.
 */
export class FileConfigSource extends ConfigSource {
  current: TollgateConfig;
  private readonly checks: ConfigCheck[] = [];
  private readonly listeners: ((config: TollgateConfig) => void)[] = [];
  /** The check in progress. */
  private following: Promise<void> | null = null;
  private closed = false;
  private readonly timer: NodeJS.Timeout;
  private seen: Versions;

  constructor(
    readonly file: string,
    /** See `readConfigFile`. */
    private readonly env: NodeJS.ProcessEnv | null,
    pollIntervalMs = POLL_INTERVAL_MS,
    /** What a former process decided. Only a later version of the files is read: one that it refused is no obstacle. */
    decided?: DecidedConfig,
  ) {
    super();
    this.seen = decided?.seen ?? {};
    this.current = decided?.current ?? this.read(this.seen);
    // A change during a reload is found at the next poll.
    this.timer = setInterval(() => void this.follow(), pollIntervalMs);
    this.timer.unref();
  }

  get decided(): DecidedConfig {
    return { current: this.current, seen: this.seen };
  }

  addCheck(check: ConfigCheck): void {
    this.checks.push(check);
  }

  onChange(listener: (config: TollgateConfig) => void): void {
    this.listeners.push(listener);
  }

  override async refresh(): Promise<void> {
    // The check in progress may have read the file before it changed.
    await this.following;
    await this.follow();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.timer);
  }

  /**
   * Reads the files, and notes their versions in `seen`. Throws ConfigError. Each version is taken before the file is
   * read, so a change in between is found at the next poll.
   */
  private read(seen: Versions): TollgateConfig {
    const note = (file: string) => void (seen[file] ??= versionOf(file));
    note(this.file);
    const secrets = secretsFileOf(this.env);
    if (secrets !== undefined) note(secrets);
    return readConfigFile(this.file, this.env, { onFile: note });
  }

  private follow(): Promise<void> {
    this.following ??= this.followChange().finally(() => (this.following = null));
    return this.following;
  }

  /** Never rejects. */
  private async followChange(): Promise<void> {
    try {
      if (Object.entries(this.seen).every(([file, version]) => versionOf(file) === version)) return;
      const seen: Versions = {};
      if (await this.reload(seen)) this.seen = seen;
    } catch (error) {
      logger('config').error({ err: error }, 'a part of the process failed to apply the changed configuration');
    }
  }

  /** False: it is not known yet whether this version may take effect. Notes the versions of its files in `seen`. */
  private async reload(seen: Versions): Promise<boolean> {
    let next: TollgateConfig;
    try {
      next = this.read(seen);
    } catch (error) {
      // Whatever the error is: editing the file must not end a running service.
      if (!(error instanceof ConfigError)) logger('config').error({ err: error }, 'reading the configuration failed');
      return refuse((error as Error).message.split('\n'));
    }
    try {
      const problems = await Promise.all(this.checks.map((check) => check(next)));
      if (problems.flat().length > 0) return refuse(problems.flat());
    } catch (error) {
      logger('config').warn(
        { err: error },
        'the changed configuration cannot be checked now; retrying, and the old one stays in force',
      );
      return false;
    }
    if (this.closed) return true;
    this.current = next;
    reloads.inc({ result: 'accepted' });
    logger('config').info({ models: next.models.length, plans: next.plans.length }, 'configuration read again');
    for (const listener of this.listeners) listener(next);
    return true;
  }
}

/**
 * Distinguishes versions of a file. If the file cannot be examined, returns the reason. Never throws: reading the file
 * says what to do.
 */
function versionOf(file: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(file);
    return `${ino}:${size}:${mtimeMs}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
}

/** Returns true: the result is known. */
function refuse(problems: readonly string[]): true {
  for (const line of problems) logger('config').error(`the old configuration stays in force: ${line}`);
  reloads.inc({ result: 'refused' });
  return true;
}
