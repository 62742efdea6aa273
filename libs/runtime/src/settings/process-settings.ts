import { OneOf, Optional, Path, Port, Secret, Text, WholeNumber } from './decorators';

const HOST = /^[A-Za-z0-9.:_-]{1,255}$/;
export const hostText = () => Text(HOST, 'a name or an address of this machine');

/** Of every process that runs on. */
export class ProcessSettings {
  @OneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent') TOLLGATE_LOG_LEVEL: string = 'info';
}

/** Of the processes with requests of users in hand. */
export class DrainSettings {
  /** How long running requests may go on when it stops; then they are ended, settled at what was delivered. */
  @WholeNumber(0, 3_600) TOLLGATE_DRAIN_SECONDS: number = 30;
}

/** Who may read /metrics, wherever a process serves it. */
export class MetricsSettings {
  /** What a scraper must send as `Authorization: Bearer …`. Without it /metrics is open to whoever reaches the port. */
  @Secret()
  @Optional()
  @Text(/^[\x21-\x7e]{16,256}$/, '16 to 256 printable characters')
  TOLLGATE_METRICS_TOKEN?: string;
}

/** Where /livez, /readyz and /metrics are served. */
export class HealthSettings {
  @hostText() TOLLGATE_HEALTH_HOST: string = '127.0.0.1';
  @Port() TOLLGATE_HEALTH_PORT: number = 9090;
}

/** Of the processes that read models, prices and plans. */
export class ConfigFileSettings {
  @Path('the path of a tollgate.yaml') TOLLGATE_CONFIG: string = 'tollgate.yaml';
}

/** Of the processes that ask backends, for which the configuration names secrets. Read again with the configuration, whose reader looks for it in the environment. */
export class ConfigSecretsSettings {
  @Optional() @Path('the path of a file with lines NAME=value') TOLLGATE_CONFIG_SECRETS_FILE?: string;
}
