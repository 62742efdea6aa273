import { randomBytes } from 'node:crypto';
import { elapsedMs, eventually, useKafka } from '@tollgate/testing';
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } from 'kafkajs';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../../messages-store.fixture';
import { applyTopics, withAdmin } from './apply-topics';
import { KafkaMessages } from '../kafka-messages';
import { describeServiceRights } from './service-rights.part';
import { TEST_IDENTITY } from '../sign/test-identity.fixture';
import { TEST_BROKER, TEST_TOPICS } from '../test-store.fixture';

const USERS = ['whole', 'mute', 'groupless', 'blind', 'stranger'] as const;
type User = (typeof USERS)[number];
const PASSWORD = 'the password of a test';
const START_LIMIT_MS = 10_000;
/** Reached only if a group is not joined, also on a busy machine. */
const JOIN_LIMIT_MS = 30_000;
/** On a busy machine. */
const RULES_LIMIT_MS = 30_000;
const { READ, WRITE, DESCRIBE_CONFIGS } = AclOperationTypes;
const { TOPIC: TOPICS, GROUP: GROUPS } = AclResourceTypes;

// Real: a broker that allows its logged-in clients what its rules say. A client of the plain listener is its
// administrator.
const kafka = useKafka({
  secured: 'SASL_PLAINTEXT',
  settings: {
    ...TEST_BROKER.settings,
    KAFKA_AUTHORIZER_CLASS_NAME: 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    KAFKA_SUPER_USERS: 'User:ANONYMOUS',
    KAFKA_LISTENER_NAME_SECURE_SASL_ENABLED_MECHANISMS: 'PLAIN,SCRAM-SHA-512',
    KAFKA_LISTENER_NAME_SECURE_SCRAM___SHA___512_SASL_JAAS_CONFIG:
      'org.apache.kafka.common.security.scram.ScramLoginModule required;',
    KAFKA_LISTENER_NAME_SECURE_PLAIN_SASL_JAAS_CONFIG:
      'org.apache.kafka.common.security.plain.PlainLoginModule required ' +
      `${USERS.map((user) => `user_${user}="${PASSWORD}"`).join(' ')};`,
  },
});

describe('a user of Kafka', () => {
  const prefix = `test-${randomBytes(5).toString('hex')}.`;
  const opened: KafkaMessages[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((messages) => messages.close())));

  const allow = (user: User, resourceType: AclResourceTypes, name: string, operations: AclOperationTypes[]) =>
    withAdmin({ brokers: kafka.brokers, clientId: 'test' }, START_LIMIT_MS, (admin) =>
      admin.createAcls({
        acl: operations.map((operation) => ({
          ...{ resourceType, resourceName: name, resourcePatternType: ResourcePatternTypes.PREFIXED },
          ...{ principal: `User:${user}`, host: '*', operation, permissionType: AclPermissionTypes.ALLOW },
        })),
      }),
    );
  const connectionOf = (username: User) => ({
    ...{ brokers: kafka.securedBrokers, clientId: 'test' },
    sasl: { mechanism: 'plain' as const, username, password: PASSWORD },
  });
  beforeAll(async () => {
    await applyTopics({ brokers: kafka.brokers, clientId: 'test' }, { topics: TEST_TOPICS, topicPrefix: prefix });
    await allow('mute', TOPICS, prefix, [READ, DESCRIBE_CONFIGS]);
    await allow('mute', GROUPS, prefix, [READ]);
    await allow('groupless', TOPICS, prefix, [READ, WRITE, DESCRIBE_CONFIGS]);
    await allow('groupless', GROUPS, `${prefix}replies`, [READ]);
    await allow('blind', TOPICS, prefix, [WRITE, DESCRIBE_CONFIGS]);
    await allow('blind', TOPICS, `${prefix}re`, [READ]);
    await allow('blind', GROUPS, prefix, [READ]);
    await allow('whole', GROUPS, prefix, [READ]);
    await allow('whole', TOPICS, prefix, [READ, WRITE, DESCRIBE_CONFIGS]);
    // The brokers apply them in order, somewhat later.
    await eventually(
      () =>
        withAdmin(connectionOf('whole'), START_LIMIT_MS, async (admin) =>
          expect(await admin.listTopics()).toContain(prefix + TOPIC),
        ),
      { timeoutMs: RULES_LIMIT_MS },
    );
  }, 2 * RULES_LIMIT_MS);

  function open(user: User, received = new Received()): KafkaMessages {
    const sasl = { mechanism: 'plain' as const, username: user, password: PASSWORD };
    const connection = { brokers: kafka.securedBrokers, clientId: 'test', sasl };
    const messages = new KafkaMessages({
      connection,
      identity: TEST_IDENTITY,
      topics: TEST_TOPICS,
      topicPrefix: prefix,
      sessionTimeoutMs: 10_000,
    });
    messages.consume(TOPIC, SUITE_GROUP, received.handler);
    messages.handle('auth.tenants.get', async ({ tenantId }) => ({ id: tenantId }) as never);
    opened.push(messages);
    return messages;
  }
  async function expectRefusal(user: User, line: RegExp): Promise<void> {
    const tookMs = await elapsedMs(() => expect(open(user).start()).rejects.toThrow(line));
    expect(tookMs).toBeLessThan(START_LIMIT_MS);
  }

  it('publishes, consumes, requests and answers with the rights of docs/operating/distributed.md', async () => {
    const received = new Received();
    const messages = open('whole', received);
    await messages.start();
    await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
    await eventually(() => received.assertAllInOrder(['a'], 1), { timeoutMs: JOIN_LIMIT_MS });
    expect(await messages.request('auth.tenants.get', { tenantId: 'a' }, { deadlineMs: 15_000 })).toMatchObject({
      id: 'a',
    });
    await eventually(() => messages.check());
  });

  it('without the right to write fails the start with one line that names the right', async () => {
    await expectRefusal(
      'mute',
      new RegExp(
        `^Kafka at .* refuses "mute": it lacks WRITE on topic "${prefix}replies".*: ` +
          'grant it \\(docs/operating/distributed\\.md\\)$',
      ),
    );
  });

  it('without the right to read its group is not ready and says why', async () => {
    const messages = open('groupless');
    await messages.start();
    const lack = new RegExp(`it lacks READ on group "${prefix}(${TOPIC}|requests\\.auth)\\.`);
    await eventually(() => expect(messages.check()).rejects.toThrow(lack), { timeoutMs: JOIN_LIMIT_MS });
  });

  it('without the right to see the topics fails the start with an error that names the right', async () => {
    await expectRefusal('stranger', /missing: .* or hidden from "stranger", which needs DESCRIBE/);
  });

  it('without the right to read a topic is not ready and says why, and recovers without a restart', async () => {
    const received = new Received();
    const messages = open('blind', received);
    await messages.start();
    await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
    const lack = `it lacks READ on topic "${prefix}${TOPIC}"`;
    await eventually(() => expect(messages.check()).rejects.toThrow(lack), { timeoutMs: JOIN_LIMIT_MS });
    await allow('blind', TOPICS, prefix, [READ]);
    await eventually(() => received.assertAllInOrder(['a'], 1), { timeoutMs: RULES_LIMIT_MS });
    await eventually(() => messages.check());
  });
});

describeServiceRights(kafka);
