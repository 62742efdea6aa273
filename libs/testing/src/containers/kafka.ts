import { ask } from './ask';
import { imageOf } from './images';
import { TestContainer, useContainer } from './test-container';

const FIND_COORDINATOR = 10;
const GROUP = 0;
const TRANSACTION = 1;

export interface KafkaOptions {
  /** Settings that override the defaults, as variables of the image: `{ KAFKA_MESSAGE_MAX_BYTES: '…' }`. */
  settings?: Record<string, string>;
  /** The protocol of a second listener, SECURE, beside the plain one. `settings` configures the authentication. */
  secured?: 'SASL_PLAINTEXT' | 'SASL_SSL';
  /** The files that `settings` names: path in the container to content. */
  files?: Record<string, string>;
}

/**
 * A real Kafka 4.1: one KRaft node without topics. A request for a topic does not create it. It keeps its data through
 * stop, kill and start.
 */
export class KafkaServer extends TestContainer {
  get brokers(): string[] {
    return [`127.0.0.1:${this.port}`];
  }

  /** The brokers of the listener SECURE. */
  get securedBrokers(): string[] {
    return [`127.0.0.1:${this.ports[1]}`];
  }

  /** Creates a user that logs in by SCRAM. The password must not contain a comma. */
  async addScramUser(name: string, password: string): Promise<void> {
    const [server = ''] = this.brokers;
    const tool = ['java', '-cp', '/opt/kafka/libs/*', 'kafka.admin.ConfigCommand', '--bootstrap-server', server];
    const user = ['--alter', '--entity-type', 'users', '--entity-name', name, '--add-config'];
    // One request for each mechanism, because a request may name a user only once.
    for (const mechanism of ['SCRAM-SHA-256', 'SCRAM-SHA-512'])
      await this.exec([...tool, ...user, `${mechanism}=[password=${password}]`]);
  }
}

/** Starts a Kafka for the calling test file. Ready means that groups and transactions have a coordinator. */
export function useKafka({ settings = {}, secured, files }: KafkaOptions = {}): KafkaServer {
  const protocols = ['PLAINTEXT:PLAINTEXT', 'CONTROLLER:PLAINTEXT', ...(secured ? [`SECURE:${secured}`] : [])];
  return useContainer(
    new KafkaServer(
      (ports) => {
        const [port = 0, securedPort] = ports;
        const listeners = (host: string): string[] => [
          `PLAINTEXT://${host}:${port}`,
          ...(secured ? [`SECURE://${host}:${securedPort}`] : []),
        ];
        return {
          image: imageOf('KAFKA'),
          environment: {
            CLUSTER_ID: '5L6g3nShT-eMCtK--X86sw',
            KAFKA_NODE_ID: '1',
            KAFKA_PROCESS_ROLES: 'broker,controller',
            KAFKA_CONTROLLER_QUORUM_VOTERS: '1@127.0.0.1:9093',
            KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
            // Bound to every interface, but advertised as 127.0.0.1, so the broker's own requests take the same route.
            KAFKA_LISTENERS: [...listeners('0.0.0.0'), 'CONTROLLER://127.0.0.1:9093'].join(),
            KAFKA_ADVERTISED_LISTENERS: listeners('127.0.0.1').join(),
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: protocols.join(),
            KAFKA_LOG_DIRS: '/var/lib/kafka/data',
            KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
            KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
            // One node, and few partitions of the internal topics: it starts sooner.
            KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
            KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS: '4',
            KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
            KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
            KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS: '4',
            KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR: '1',
            KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR: '1',
            // A killed broker can start again only after its former session has expired: by default after 9 s.
            KAFKA_BROKER_SESSION_TIMEOUT_MS: '3000',
            KAFKA_BROKER_HEARTBEAT_INTERVAL_MS: '300',
            KAFKA_HEAP_OPTS: '-Xms128m -Xmx512m',
            // Compiled quickly instead of well, because tests wait for the start.
            KAFKA_OPTS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC',
            ...settings,
          },
          ...(files ? { files } : {}),
          ports,
          ready: async () => {
            await findCoordinator(port, GROUP);
            await findCoordinator(port, TRANSACTION);
          },
        };
      },
      secured ? 2 : 1,
    ),
  );
}

/** Finds the coordinator of a group or transaction. The first request creates the internal topic. */
async function findCoordinator(port: number, kind: number): Promise<void> {
  const key = Buffer.from('tollgate-ready');
  const body = Buffer.alloc(2 + key.length + 1);
  body.writeInt16BE(key.length, 0);
  key.copy(body, 2);
  body.writeInt8(kind, 2 + key.length);
  const header = Buffer.alloc(14);
  header.writeInt32BE(header.length - 4 + body.length, 0);
  header.writeInt16BE(FIND_COORDINATOR, 4);
  header.writeInt16BE(1, 6); // version
  header.writeInt32BE(1, 8); // correlation id
  header.writeInt16BE(-1, 12); // no client id
  const answer = await ask(
    port,
    Buffer.concat([header, body]),
    (bytes) => bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0),
  );
  const errorCode = answer.readInt16BE(12); // after size, correlation id and throttle time
  if (errorCode !== 0) throw new Error(`Kafka has no coordinator yet (error ${errorCode})`);
}
