import { unwatchFile, watchFile } from 'node:fs';
import { logger } from './logging';
import { ConfigError, readConfigFile } from './read-config';
import { ConfigSource, type TollgateConfig } from './tollgate-config';

const POLL_INTERVAL_MS = 1_000;

/**
 * `tollgate.yaml`, read at construction (throws ConfigError) and again when it changes. A version that does not pass the checks is refused with a log line a
 * problem, and the old one stays in force. Polled, as notifications miss a file that an editor or a ConfigMap replaces.
 */
export class FileConfigSource extends ConfigSource {
  current: TollgateConfig;
  private readonly listeners: ((config: TollgateConfig) => void)[] = [];

  constructor(
    readonly file: string,
    private readonly env: NodeJS.ProcessEnv,
    pollIntervalMs = POLL_INTERVAL_MS,
  ) {
    super();
    this.current = readConfigFile(file, env);
    watchFile(file, { interval: pollIntervalMs, persistent: false }, this.reload);
  }

  onChange(listener: (config: TollgateConfig) => void): void {
    this.listeners.push(listener);
  }

  close(): void {
    unwatchFile(this.file, this.reload);
  }

  private readonly reload = (): void => {
    try {
      this.current = readConfigFile(this.file, this.env);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const line of error.message.split('\n'))
        logger('config').error(`refused, the old configuration stays in force: ${line}`);
      return;
    }
    logger('config').info(
      { models: this.current.models.length, plans: this.current.plans.length },
      'configuration read again',
    );
    for (const listener of this.listeners) listener(this.current);
  };
}
