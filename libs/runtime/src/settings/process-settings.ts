import { areProxies, TRUSTED_PROXIES_FORM, wrongProxies } from '../http/client-address';
import { combine, OneOf, Optional, Path, Port, Satisfies, Secret, Setting, Text, WholeNumber } from './decorators';
import type { ChecksItself } from './read-settings';

const HOST = /^[A-Za-z0-9.:_-]{1,255}$/;
export const hostText = () => Text(HOST, 'a name or an address of this machine');

/** Settings of every process that keeps running. */
export class ProcessSettings {
  @Setting('Least severe level that is logged. `debug` also logs each request.')
  @OneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')
  TOLLGATE_LOG_LEVEL: string = 'info';
}

/** Settings of the processes that serve user requests. */
export class DrainSettings {
  @Setting('Seconds that running requests may take to finish after a signal (of a service: after its lame duck time).')
  @WholeNumber(0, 3_600)
  TOLLGATE_DRAIN_SECONDS: number = 30;
}

/** Settings of the services behind a load balancer. */
export class LameDuckSettings {
  @Setting('Seconds after a signal in which it reports "not ready" but still serves, so that load balancers notice.')
  @WholeNumber(0, 300)
  TOLLGATE_LAME_DUCK_SECONDS: number = 5;
}

/** Settings of the processes that must know the address of a client. */
export class TrustedProxiesSettings {
  @Setting(
    'Proxies whose `X-Forwarded-For` or PROXY header names the client: addresses, ranges, `loopback`, `private`.',
  )
  @Optional()
  @Satisfies(areProxies, TRUSTED_PROXIES_FORM, wrongProxies)
  TOLLGATE_TRUSTED_PROXIES?: string;
}

const MetricsToken = (description: string) =>
  combine(Setting(description), Secret(), Optional(), Text(/^[\x21-\x7e]{16,256}$/, '16 to 256 printable characters'));

/** Access to /metrics, on any port that serves it. */
export class MetricsSettings implements ChecksItself {
  @MetricsToken('Bearer token that `/metrics` requires. `/readyz` gives reasons to callers that send it.')
  TOLLGATE_METRICS_TOKEN?: string;
  @MetricsToken('A further token that is accepted while scrapers change to a new one.')
  TOLLGATE_FORMER_METRICS_TOKEN?: string;

  problems(): string[] {
    return this.TOLLGATE_FORMER_METRICS_TOKEN !== undefined && this.TOLLGATE_METRICS_TOKEN === undefined
      ? ['TOLLGATE_FORMER_METRICS_TOKEN is set: set TOLLGATE_METRICS_TOKEN, too']
      : [];
  }
}

/** The tokens that are accepted. None: nobody needs one. */
export const metricsTokensOf = (settings: Omit<MetricsSettings, 'problems'>): string[] =>
  [settings.TOLLGATE_METRICS_TOKEN, settings.TOLLGATE_FORMER_METRICS_TOKEN].filter((token) => token !== undefined);

/** The address of /livez, /readyz and /metrics. */
class HealthSettings {
  @Setting('Address that serves `/livez`, `/readyz`, `/trafficz` and `/metrics`.')
  @hostText()
  TOLLGATE_HEALTH_HOST: string = '127.0.0.1';
  @Setting('Port of `TOLLGATE_HEALTH_HOST`. 0: any free port.')
  @Port()
  TOLLGATE_HEALTH_PORT: number = 9090;
}

/** Settings that `runService` reads for every service. */
export const SERVICE_SETTINGS = [ProcessSettings, HealthSettings, MetricsSettings] as const;

/** Settings of the processes that need models, prices and plans. */
export class ConfigFileSettings {
  @Setting('Models, prices, plans and backends. The shipped file explains itself in comments.')
  @Path('the path of a tollgate.yaml')
  TOLLGATE_CONFIG: string = 'tollgate.yaml';
}

/** Settings of the processes that call backends with secrets. The reader of the configuration takes them from `env`. */
export class ConfigSecretsSettings {
  @Setting('What `tollgate.yaml` names as `${NAME}`. Read again whenever `tollgate.yaml` is.')
  @Optional()
  @Path('the path of a file with lines NAME=value')
  TOLLGATE_CONFIG_SECRETS_FILE?: string;
}

/** Settings of the processes that call backends, or read their metrics pages. */
export class SimulatorSettings {
  @Setting('What the backend URL `simulator:` in `tollgate.yaml` stands for. Its metrics page is beside it.')
  @Optional()
  @Text(/^https?:\/\/\S+\/v1$/, 'a URL that ends in /v1')
  TOLLGATE_SIMULATOR_URL?: string;
}
