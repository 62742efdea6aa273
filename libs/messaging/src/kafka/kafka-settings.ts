import type { Service } from '@tollgate/contracts';
import {
  fileProblem,
  Flag,
  OneOf,
  Optional,
  Path,
  problemsOfTls,
  Secret,
  Setting,
  Text,
  WholeNumber,
  type ChecksItself,
} from '@tollgate/runtime';
import { readFileSync } from 'node:fs';
import type { KafkaConnection } from './client/connection';
import { KafkaMessages, type KafkaMessagesOptions } from './kafka-messages';
import { KeysFile } from './sign/keys-file';

const BROKERS = /^\s*[^\s,:]+:\d{1,5}\s*(,\s*[^\s,:]+:\d{1,5}\s*)*$/;
const USER = /^[^\0]{1,1024}$/;
type Mechanism = NonNullable<KafkaConnection['sasl']>['mechanism'];

/** The settings of every process that uses Kafka. */
export class KafkaSettings implements ChecksItself {
  @Setting('The first brokers to connect to. They name the others.')
  @Text(BROKERS, 'host:port of one or more brokers, with commas between them')
  KAFKA_BROKERS!: string;
  @Setting('Whether the brokers are reached by TLS.')
  @Flag()
  KAFKA_TLS: boolean = false;
  @Setting('Authorities that signed the certificates of the brokers. Needs `KAFKA_TLS`.', {
    byDefault: 'those of the system',
  })
  @Optional()
  @Path('the path of a PEM file')
  KAFKA_CA_FILE?: string;
  @Setting('How a service signs in at the brokers. Needs `KAFKA_USERNAME` and `KAFKA_PASSWORD`.')
  @Optional()
  @OneOf('plain', 'scram-sha-256', 'scram-sha-512')
  KAFKA_SASL_MECHANISM?: Mechanism;
  @Setting('User of this service at the brokers. Needs `KAFKA_SASL_MECHANISM`.')
  @Optional()
  @Text(USER, 'a user of the brokers')
  KAFKA_USERNAME?: string;
  @Setting('Password of that user.')
  @Secret()
  @Optional()
  @Text(USER, 'the password of KAFKA_USERNAME')
  KAFKA_PASSWORD?: string;
  @Setting('Prefix of each topic and consumer group. `tollgate topics apply` needs the same one.')
  @Text(/^[A-Za-z0-9._-]{0,100}$/, 'letters, digits and . _ -')
  KAFKA_TOPIC_PREFIX: string = '';
  /** Brokers refuse less than 6 s unless their group.min.session.timeout.ms is lower. */
  @Setting('A replica that is silent for this long loses its partitions. The brokers must allow less than 6000.')
  @WholeNumber(1_000, 300_000)
  KAFKA_SESSION_TIMEOUT_MS: number = 6_000;

  problems(): string[] {
    const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_USERNAME: user, KAFKA_PASSWORD: password } = this;
    const problems: string[] = [];
    if (mechanism && (!user || !password))
      problems.push('KAFKA_SASL_MECHANISM is set: set KAFKA_USERNAME and KAFKA_PASSWORD, too');
    if (!mechanism && (user || password))
      problems.push('KAFKA_USERNAME or KAFKA_PASSWORD is set: set KAFKA_SASL_MECHANISM, too');
    if (this.KAFKA_CA_FILE !== undefined) {
      if (!this.KAFKA_TLS) problems.push('KAFKA_CA_FILE has no effect without TLS: set KAFKA_TLS to true');
      try {
        const [problem] = problemsOfTls({ ca: readFileSync(this.KAFKA_CA_FILE, 'utf8') });
        if (problem) problems.push(`KAFKA_CA_FILE: ${this.KAFKA_CA_FILE} ${problem.message}`);
      } catch (error) {
        problems.push(`KAFKA_CA_FILE: ${this.KAFKA_CA_FILE} cannot be read (${fileProblem(error)})`);
      }
    }
    return problems;
  }
}

/** The settings of every process that acts as a service. */
export class MessageKeysSettings {
  @Setting('Keys with which this service signs and verifies messages. Read again when the file changes.')
  @Path('the path of the message keys of this service (make them with: tollgate message-keys create DIR)')
  TOLLGATE_MESSAGE_KEYS_FILE!: string;
}

/** The connection by these settings. `clientId` names this process at the brokers. */
export function kafkaConnection(settings: KafkaSettings, clientId: string): KafkaConnection {
  const { KAFKA_CA_FILE: ca, KAFKA_SASL_MECHANISM: mechanism } = settings;
  return {
    brokers: settings.KAFKA_BROKERS.split(',').map((broker) => broker.trim()),
    clientId,
    ...(settings.KAFKA_TLS ? { tls: ca === undefined ? true : { ca: readFileSync(ca, 'utf8') } } : {}),
    ...(mechanism
      ? { sasl: { mechanism, username: settings.KAFKA_USERNAME!, password: settings.KAFKA_PASSWORD! } }
      : {}),
  };
}

/** Messages by the settings of a service. Throws a StartError if its keys cannot be used. */
export function kafkaMessages(
  settings: KafkaSettings & MessageKeysSettings,
  service: Service,
  tuning: Pick<KafkaMessagesOptions, 'concurrentPartitions' | 'startsWithoutBrokers'> = {},
): KafkaMessages {
  return new KafkaMessages({
    connection: kafkaConnection(settings, `tollgate-${service}`),
    identity: { services: [service], keys: new KeysFile(settings.TOLLGATE_MESSAGE_KEYS_FILE, service) },
    topicPrefix: settings.KAFKA_TOPIC_PREFIX,
    sessionTimeoutMs: settings.KAFKA_SESSION_TIMEOUT_MS,
    ...tuning,
  });
}
