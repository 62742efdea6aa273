import { DEFAULT_CLAIM_LIMITS } from '@tollgate/admission';
import { KafkaSettings, MessageKeysSettings } from '@tollgate/messaging';
import { RedisSettings, SettledReplicasSettings } from '@tollgate/redis';
import {
  combine,
  ConfigFileSettings,
  ConfigSecretsSettings,
  DrainSettings,
  HardToGuess,
  hostText,
  LameDuckSettings,
  Optional,
  Port,
  Secret,
  Setting,
  SimulatorSettings,
  Text,
  TracingSettings,
  TrustedProxiesSettings,
  WholeNumber,
} from '@tollgate/runtime';
import { DEFAULT_ANSWER_KIB } from './idempotency/idempotency-keys';
import { DEFAULT_BODY_MEMORY_MIB, DEFAULT_MAX_BODY_MIB, LARGEST_MAX_BODY_MIB } from './options';

const MIB = 1024 * 1024;
export const OPERATOR_SECRET_MIN_BITS = 80;
const OPERATOR_SECRET_FORM = /^[\x21-\x7e]{16,256}$/;
const HOST_NAMES = /^[A-Za-z0-9._-]{1,253}(,[A-Za-z0-9._-]{1,253}){0,99}$/;

/** Where both public surfaces are served. */
export class PublicSettings {
  @Setting('Address of the public port. `0.0.0.0` is every address of the machine.')
  @hostText()
  TOLLGATE_HOST: string = '127.0.0.1';
  @Setting('Public port: both APIs and the docs. 0: any free port.')
  @Port()
  TOLLGATE_PORT: number = 8080;
  @Setting('Connections that the public port accepts. Further ones get a 503.', {
    byDefault: 'from `ulimit -n`',
  })
  @Optional()
  @WholeNumber(1, 1_000_000)
  TOLLGATE_MAX_CONNECTIONS?: number;
  @Setting('MiB of the largest inference body, at most those of `TOLLGATE_BODY_MEMORY_MIB`. A larger one gets 413.')
  @WholeNumber(1, LARGEST_MAX_BODY_MIB)
  TOLLGATE_MAX_BODY_MIB: number = DEFAULT_MAX_BODY_MIB;
  /** The minimum fits one body of the default limit. */
  @Setting('MiB of memory for the bodies of all requests in progress.')
  @WholeNumber(10, 65_536)
  TOLLGATE_BODY_MEMORY_MIB: number = DEFAULT_BODY_MEMORY_MIB;
}

/** The standalone form has another default. */
export const OperatorPort = (byDefault?: string) =>
  combine(
    Setting('Port of the operator API, of `/metrics` and of the probes. 0: any free port.', { byDefault }),
    Port(),
  );

/** The standalone form generates one by default. */
export const OperatorSecret = (byDefault?: string) =>
  combine(
    Setting('Bearer token of the operator API. Make one with `openssl rand -hex 32`: it needs 80 bits of entropy.', {
      byDefault,
    }),
    Secret(),
    HardToGuess(OPERATOR_SECRET_MIN_BITS),
    Text(OPERATOR_SECRET_FORM, '16 to 256 printable characters'),
  );

/** The secret before the one in force. */
export class FormerSecretSettings {
  @Setting('A further operator secret that is accepted while callers change to a new one.')
  @Optional()
  @Secret()
  @HardToGuess(OPERATOR_SECRET_MIN_BITS)
  @Text(OPERATOR_SECRET_FORM, '16 to 256 printable characters')
  TOLLGATE_FORMER_OPERATOR_SECRET?: string;
}

/** The secrets that the operator API accepts. */
export const acceptedSecrets = (secret: string, { TOLLGATE_FORMER_OPERATOR_SECRET: former }: FormerSecretSettings) =>
  former === undefined ? [secret] : [secret, former];

/** Where the operator API is served, and what its callers send. */
export class OperatorSettings {
  @Setting('Address of the operator API.')
  @hostText()
  TOLLGATE_OPERATOR_HOST: string = '127.0.0.1';
  @OperatorPort() TOLLGATE_OPERATOR_PORT: number = 8081;
  @OperatorSecret() TOLLGATE_OPERATOR_SECRET!: string;
}

/** The host names of the operator API. */
export class OperatorHostsSettings {
  @Setting('Host names that callers of the operator API may use besides its addresses and localhost: `a,b`.')
  @Optional()
  @Text(HOST_NAMES, 'at most 100 names of hosts, separated by commas')
  TOLLGATE_OPERATOR_ALLOWED_HOSTS?: string;
}

const IDEMPOTENCY_SECRET_MIN_BITS = 80;
const IDEMPOTENCY_SECRETS_FORM = /^[\x21-\x2b\x2d-\x7e]{32,256}(,[\x21-\x2b\x2d-\x7e]{32,256})?$/;

/** The standalone form makes one by default. */
export class IdempotencySecretsSettings {
  @Setting(
    'Encrypts answers kept for repeats of an `Idempotency-Key`: the secret, or `new,former`. All gateways: the same.',
    { byDefault: '–; standalone: made on the first start' },
  )
  @Optional()
  @Secret()
  @HardToGuess(IDEMPOTENCY_SECRET_MIN_BITS)
  @Text(IDEMPOTENCY_SECRETS_FORM, 'one or two secrets of 32 to 256 printable characters, separated by a comma')
  TOLLGATE_IDEMPOTENCY_SECRETS?: string;
}

/** What is kept for repeats. */
export class IdempotencySettings {
  @Setting('KiB of the largest answer that is kept for repeats of its `Idempotency-Key`.')
  @WholeNumber(1, 16_384)
  TOLLGATE_IDEMPOTENCY_ANSWER_KIB: number = DEFAULT_ANSWER_KIB;
  @Setting('MiB of the answers that are kept for repeats, for each tenant. Beyond it the oldest are dropped.')
  @WholeNumber(1, 65_536)
  TOLLGATE_IDEMPOTENCY_TENANT_MIB: number = DEFAULT_CLAIM_LIMITS.maxAnswerChars / MIB;
}

/** The options of the gateway, and of the admission store that it uses. */
export function idempotencyOptions(settings: IdempotencySettings, secrets: string | undefined) {
  return {
    gateway: secrets !== undefined && {
      idempotency: {
        secrets: secrets.split(','),
        maxAnswerBytes: settings.TOLLGATE_IDEMPOTENCY_ANSWER_KIB * 1_024,
      },
    },
    claims: { maxAnswerChars: settings.TOLLGATE_IDEMPOTENCY_TENANT_MIB * MIB },
  };
}

const MAX_WORKERS = 64;

/** The standalone form has another default. */
export const WorkersCount = (byDefault?: string) =>
  combine(
    Setting(
      'Processes that share the ports, for machines with several cores. Limits of connections and memory are for each.',
      { byDefault },
    ),
    WholeNumber(1, MAX_WORKERS),
  );

class WorkersSettings {
  @WorkersCount() TOLLGATE_WORKERS: number = 1;
}

/** All settings of the service besides SERVICE_SETTINGS. */
export const SETTINGS = [
  KafkaSettings,
  MessageKeysSettings,
  RedisSettings,
  SettledReplicasSettings,
  ConfigFileSettings,
  ConfigSecretsSettings,
  PublicSettings,
  TrustedProxiesSettings,
  WorkersSettings,
  OperatorSettings,
  FormerSecretSettings,
  OperatorHostsSettings,
  IdempotencySecretsSettings,
  IdempotencySettings,
  SimulatorSettings,
  DrainSettings,
  LameDuckSettings,
  TracingSettings,
] as const;
