import { type Stats, statSync } from 'node:fs';
import { logger } from './logging';
import { Counter, metrics } from './metrics';
import { ConfigError, readConfigFile } from './read-config';
import { ConfigSource, type TollgateConfig } from './tollgate-config';

const POLL_INTERVAL_MS = 1_000;

const reloads = new Counter({
  name: 'tollgate_config_reloads_total',
  help: 'Changed configurations that were read again, by result: accepted, or refused and the old one kept.',
  labelNames: ['result'],
  registers: [metrics],
});

/**
 * `tollgate.yaml`, read at construction (throws ConfigError) and again when it changes. A version that does not pass the checks is refused with a log line a
 * problem, and the old one stays in force. Polled, as notifications miss a file that an editor or a ConfigMap replaces.
 */
export class FileConfigSource extends ConfigSource {
  current: TollgateConfig;
  private readonly listeners: ((config: TollgateConfig) => void)[] = [];
  private readonly timer: NodeJS.Timeout;
  private seen: string;

  constructor(
    readonly file: string,
    private readonly env: NodeJS.ProcessEnv,
    pollIntervalMs = POLL_INTERVAL_MS,
  ) {
    super();
    // Looked at before it is read: a change in between is found at the next look.
    this.seen = this.look();
    this.current = readConfigFile(file, env);
    this.timer = setInterval(() => {
      const now = this.look();
      if (now === this.seen) return;
      this.seen = now;
      this.reload();
    }, pollIntervalMs);
    this.timer.unref();
  }

  onChange(listener: (config: TollgateConfig) => void): void {
    this.listeners.push(listener);
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** What tells one version of the file from another; empty while there is none. */
  private look(): string {
    const stats: Stats | undefined = statSync(this.file, { throwIfNoEntry: false });
    return stats ? `${stats.ino}:${stats.size}:${stats.mtimeMs}` : '';
  }

  private reload(): void {
    try {
      this.current = readConfigFile(this.file, this.env);
    } catch (error) {
      // Whatever is wrong with it: a file that somebody edits must not end a running service.
      if (!(error instanceof ConfigError)) logger('config').error({ err: error }, 'reading the configuration failed');
      for (const line of (error as Error).message.split('\n'))
        logger('config').error(`refused, the old configuration stays in force: ${line}`);
      reloads.inc({ result: 'refused' });
      return;
    }
    reloads.inc({ result: 'accepted' });
    logger('config').info(
      { models: this.current.models.length, plans: this.current.plans.length },
      'configuration read again',
    );
    for (const listener of this.listeners) listener(this.current);
  }
}
