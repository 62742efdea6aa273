import { TOPICS, type Service } from '@tollgate/contracts';
import { certificateCure, delay, StartError, tlsRefusal, withTimeout } from '@tollgate/runtime';
import { ConfigResourceTypes, type Admin } from 'kafkajs';
import { createKafka, Sockets, type KafkaConnection } from '../client/connection';
import { causesOf, isRefused, rightMissingIn, RightMissingError } from '../client/rights';
import { topicsOf } from './rights-plan';
import { Names, planTopics, type PlannedTopic, type Topics } from './topic-plan';

/** The time limit of a start or of `topics apply`. */
const REACH_TIMEOUT_MS = 8_000;
const APPLY_TIMEOUT_MS = 60_000;
const SETTLE_POLL_MS = 50;
/** Brokers may take this long to learn of a new topic, or that they lead it. */
const METADATA_TIMEOUT_MS = 5_000;
/** The cure for topics that differ from the tables. */
const CURE = 'run "tollgate topics apply"';
/** The broker's own setting (`default.replication.factor`). */
const BROKER_DEFAULT = -1;

export interface TopicsOptions {
  topics?: Topics;
  /** A prefix of each topic and group name. Empty by default. */
  topicPrefix?: string;
  /** Only the topics that this service uses. */
  service?: Service;
}

export interface ApplyOptions extends TopicsOptions {
  /**
   * Adds partitions where the table has more. Not by default: a key may then move to another partition, and its new
   * messages overtake its older ones.
   */
  growPartitions?: boolean;
  /** The replication factor of new topics; the broker's `default.replication.factor` when absent. */
  replicationFactor?: number;
  /** Changes nothing, and reports what it would do. */
  dryRun?: boolean;
  /** Called with a line for each thing done or found. */
  print?: (line: string) => void;
}

interface FoundTopic {
  partitions: number;
  config: Map<string, string>;
}

/**
 * Creates the topics of the tables and corrects their settings. Safe to repeat, also from several places at once.
 * Rejects when something remains that it may not change: a topic with too few partitions (without `growPartitions`).
 */
export async function applyTopics(connection: KafkaConnection, options: ApplyOptions = {}): Promise<void> {
  const { print = () => {}, growPartitions = false, replicationFactor = BROKER_DEFAULT, dryRun = false } = options;
  const planned = planOf(options);
  await withAdmin(connection, APPLY_TIMEOUT_MS, async (admin) => {
    const existing = await find(admin, planned);
    const missing = planned.filter(({ name }) => !existing.has(name));
    if (dryRun) {
      for (const { name, partitions } of missing) print(`${name}: to be created with ${partitions} partitions`);
      const wrong = problemsOf(planned, existing, { missing: false });
      for (const problem of wrong) print(`to be corrected: ${problem}`);
      return;
    }
    if (missing.length > 0) {
      await admin.createTopics({
        waitForLeaders: false,
        topics: missing.map(({ name, partitions, config }) => ({
          topic: name,
          numPartitions: partitions,
          replicationFactor,
          configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
        })),
      });
    }
    for (const { name, partitions } of missing) print(`${name}: created with ${partitions} partitions`);
    const wrong: string[] = [];
    for (const topic of planned) {
      const found = existing.get(topic.name);
      if (!found) continue;
      const done = await correct(admin, topic, found, growPartitions, wrong);
      print(`${topic.name}: ${done.length > 0 ? done.join(', ') : 'correct'}`);
    }
    if (wrong.length > 0) throw new TopicsError(wrong.join('; '));
    // Brokers learn of changes one after the other. The next start must find them on every broker.
    while (problemsOf(planned, await find(admin, planned)).length > 0) await delay(SETTLE_POLL_MS);
  });
}

/**
 * Rejects within 10 s, with one error that names each missing or wrong topic and the cure, or with why the brokers
 * cannot be asked. Changes nothing.
 */
export async function checkTopics(connection: KafkaConnection, options: TopicsOptions = {}): Promise<void> {
  const planned = planOf(options);
  await withAdmin(connection, REACH_TIMEOUT_MS, async (admin) => {
    const problems = problemsOf(planned, await find(admin, planned), { user: connection.sasl?.username });
    if (problems.length > 0)
      throw new TopicsError(`Kafka topics differ from what is needed: ${problems.join('; ')}: ${CURE}`);
  });
}

/**
 * Runs `work` with an admin client in bounded time. An error on the way to the brokers becomes one line with the cure.
 */
export async function withAdmin<T>(
  connection: KafkaConnection,
  timeoutMs: number,
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  const sockets = new Sockets();
  const admin = createKafka(connection, sockets, { quiet: true }).admin({ retry: { retries: 2 } });
  const connectAndWork = async () => {
    await withTimeout(REACH_TIMEOUT_MS, admin.connect());
    const result = await work(admin);
    await admin.disconnect();
    return result;
  };
  try {
    return await withTimeout(timeoutMs, connectAndWork());
  } catch (error) {
    throw error instanceof TopicsError ? error : unusable(connection, error);
  } finally {
    sockets.destroy();
  }
}

/** The brokers answered, and the topics are wrong. */
class TopicsError extends StartError {}

/** The brokers do not answer, or their answer does not say what is wrong. */
export class BrokersAwayError extends StartError {}

/** The error line for brokers that cannot be used, with the cure. */
export function unusable({ brokers, tls, sasl }: KafkaConnection, error: unknown): StartError {
  const why = error instanceof Error ? error.message : String(error);
  const user = sasl ? `as "${sasl.username}" by ${sasl.mechanism}` : 'without a user';
  const how = `${tls ? 'with' : 'without'} TLS, ${user}`;
  const at = `at ${brokers.join(', ')} (${how})`;
  if (error instanceof Error && error.name === 'KafkaJSSASLAuthenticationError')
    return new StartError(
      `Kafka ${at} refuses the user: ${why}: correct KAFKA_USERNAME, KAFKA_PASSWORD or KAFKA_SASL_MECHANISM`,
      { cause: error },
    );
  const lack = rightMissingIn(error);
  if (lack || isRefused(error))
    return new StartError(
      `Kafka ${at} refuses ${sasl ? `"${sasl.username}"` : 'this client'}: ${lack?.message ?? why}: ` +
        'grant it (docs/operating/distributed.md)',
      { cause: error },
    );
  for (const cause of causesOf(error)) {
    const cure = certificateCure(cause, 'KAFKA_CA_FILE');
    if (cure !== undefined)
      return new BrokersAwayError(
        `Kafka cannot be used ${at}: the certificate of the brokers is not trusted (${why}): ${cure}`,
        { cause: error },
      );
    // Clients have no certificate.
    const refusal = tlsRefusal(cause);
    if (refusal !== undefined)
      return new BrokersAwayError(
        `Kafka cannot be used ${at}: the brokers refuse this TLS (${refusal}): set their ssl.client.auth to none`,
        { cause: error },
      );
  }
  return new BrokersAwayError(
    `Kafka cannot be used ${at}: ${why}: check KAFKA_BROKERS, KAFKA_TLS and KAFKA_SASL_MECHANISM with its user`,
    { cause: error },
  );
}

function planOf({ topics = TOPICS, topicPrefix = '', service }: TopicsOptions): PlannedTopic[] {
  const names = new Names(topicPrefix);
  const planned = planTopics(topics, names);
  if (!service) return planned;
  const own = topicsOf(service, topics, names);
  return planned.filter(({ name }) => own.has(name));
}

async function find(admin: Admin, planned: PlannedTopic[]): Promise<Map<string, FoundTopic>> {
  // Listed first: on a broker with automatic creation, asking for a missing topic creates it.
  const existing = new Set(await admin.listTopics());
  const names = planned.map(({ name }) => name).filter((name) => existing.has(name));
  if (names.length === 0) return new Map();
  const topics = await metadataOf(admin, names);
  const resources = await configsOf(admin, names);
  const configs = new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
  return new Map(
    topics.map(({ name, partitions }) => [
      name,
      { partitions: partitions.length, config: configs.get(name) ?? new Map<string, string>() },
    ]),
  );
}

async function configsOf(admin: Admin, names: string[]) {
  const resources = names.map((name) => ({ type: ConfigResourceTypes.TOPIC, name }));
  try {
    return (await admin.describeConfigs({ includeSynonyms: false, resources })).resources;
  } catch (error) {
    throw isRefused(error) ? new RightMissingError('DESCRIBE_CONFIGS on the topics', error) : error;
  }
}

/** The offset of the next message in a partition. */
export async function endOf(connection: KafkaConnection, topic: string, partition: number): Promise<string> {
  return withAdmin(connection, REACH_TIMEOUT_MS, async (admin) => {
    const offsets = await onceKnown(() => admin.fetchTopicOffsets(topic));
    const found = offsets.find((one) => one.partition === partition);
    if (!found) throw new TopicsError(`"${topic}" has no partition ${partition}: ${CURE}`);
    return found.high;
  });
}

/** Ids of the partitions of a topic; empty if there is no such topic. */
export async function partitionsOf(connection: KafkaConnection, topic: string): Promise<Set<number>> {
  return withAdmin(connection, REACH_TIMEOUT_MS, async (admin) => {
    if (!(await admin.listTopics()).includes(topic)) return new Set();
    const found = await metadataOf(admin, [topic]);
    return new Set(found.flatMap(({ partitions }) => partitions.map(({ partitionId }) => partitionId)));
  });
}

async function metadataOf(admin: Admin, names: string[]) {
  return (await onceKnown(() => admin.fetchTopicMetadata({ topics: names }))).topics;
}

/** Asks again for up to 5 s: some brokers may not know a new topic yet, or that they lead it. */
async function onceKnown<T>(ask: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + METADATA_TIMEOUT_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (isRefused(error) || performance.now() >= untilMs) throw error;
      await delay(SETTLE_POLL_MS);
    }
  }
}

/** The problems that would fail a start. Brokers hide topics from a user that may not DESCRIBE them. */
function problemsOf(
  planned: PlannedTopic[],
  existing: Map<string, FoundTopic>,
  { user, missing: withMissing = true }: { user?: string | undefined; missing?: boolean } = {},
): string[] {
  const missing = planned.filter(({ name }) => !existing.has(name)).map(({ name }) => `"${name}"`);
  const unseen = user === undefined ? '' : `, or hidden from "${user}", which needs DESCRIBE on them`;
  const problems = withMissing && missing.length > 0 ? [`missing: ${missing.join(', ')}${unseen}`] : [];
  for (const { name, partitions, config } of planned) {
    const found = existing.get(name);
    if (!found) continue;
    if (found.partitions < partitions) problems.push(tooFew(name, found.partitions, partitions));
    for (const [key, value] of Object.entries(config)) {
      if (found.config.get(key) !== value) problems.push(`"${name}" has ${key}=${found.config.get(key)}, not ${value}`);
    }
  }
  return problems;
}

/** Corrects an existing topic and returns what was done. What must not be changed goes to `wrong`. */
async function correct(
  admin: Admin,
  { name, partitions, config }: PlannedTopic,
  found: FoundTopic,
  growPartitions: boolean,
  wrong: string[],
): Promise<string[]> {
  const done: string[] = [];
  if (found.partitions < partitions && growPartitions) {
    await admin.createPartitions({ topicPartitions: [{ topic: name, count: partitions }] });
    done.push(`partitions ${found.partitions} → ${partitions}`);
  } else if (found.partitions < partitions) {
    wrong.push(tooFew(name, found.partitions, partitions));
  }
  const changes = Object.entries(config).filter(([key, value]) => found.config.get(key) !== value);
  if (changes.length > 0) {
    await admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name,
          configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
        },
      ],
    });
    done.push(...changes.map(([key, value]) => `${key} ${found.config.get(key)} → ${value}`));
  }
  return done;
}

const tooFew = (name: string, found: number, wanted: number): string =>
  `"${name}" has ${found} partitions, not ${wanted} ` +
  '(--grow-partitions adds some, and later messages of a key may then overtake earlier ones)';
