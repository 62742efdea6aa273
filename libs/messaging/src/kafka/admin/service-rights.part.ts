import { randomBytes } from 'node:crypto';
import {
  ASKERS,
  consumersOf,
  newId,
  SERVICES,
  serviceOf,
  TOPICS,
  type Service,
  type Subject,
  type Topic,
} from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, type KafkaServer } from '@tollgate/testing';
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes, type AclEntry } from 'kafkajs';
import { applyRights, findRights } from './apply-rights';
import { applyTopics, withAdmin } from './apply-topics';
import type { KafkaConnection } from '../client/connection';
import { KafkaMessages } from '../kafka-messages';
import { Publisher } from '../publish/publisher';
import { itRemovesGroupsOfItsOwnRepliesAlone } from './reply-group-rights.part';
import { planRights } from './rights-plan';
import { itServesWithASecondUser } from './second-user.part';
import { applyScramUsers } from './scram-users';
import { TEST_IDENTITY } from '../sign/test-identity.fixture';
import { SupervisedConsumer } from '../client/supervised-consumer';
import { Names, planTopics } from './topic-plan';

const LIMIT_MS = 60_000;
const ADMIN_LIMIT_MS = 20_000;
const prefix = `rights-${randomBytes(5).toString('hex')}.`;
const names = new Names(prefix);
const passwords = Object.fromEntries(SERVICES.map((service) => [service, randomBytes(24).toString('hex')])) as Record<
  Service,
  string
>;

/**
 * Each service's own user with the rights of the tables, on a real broker that checks them. The plain listener of
 * `kafka` is the administrator's.
 */
export function describeServiceRights(kafka: KafkaServer): void {
  const administrator = (): KafkaConnection => ({ brokers: kafka.brokers, clientId: 'test' });
  const connectionOf = (username: string, password: string): KafkaConnection => ({
    ...{ brokers: kafka.securedBrokers, clientId: 'test' },
    sasl: { mechanism: 'scram-sha-512', username, password },
  });
  const as = (service: Service) => connectionOf(service, passwords[service]);
  const makeUsers = () =>
    applyScramUsers(
      administrator(),
      SERVICES.map((name) => ({ name, password: passwords[name] })),
    );
  const topicNames = planTopics(TOPICS, names).map(({ name }) => name);
  const rights = planRights(TOPICS, names);
  const may = (service: Service, operation: 'READ' | 'WRITE', topic: string) =>
    rights.some(
      (right) =>
        right.principal === `User:${service}` && right.operation === operation && [topic, '*'].includes(right.name),
    );

  describe("a service's user", () => {
    beforeAll(async () => {
      // Some hundred refusals are expected here.
      configureLogging({ level: 'silent', pretty: false });
      await makeUsers();
      await applyRights(administrator(), { topicPrefix: prefix });
      await applyTopics(administrator(), { topicPrefix: prefix });
    }, LIMIT_MS);

    it('can do everything its service does, on every topic and every subject', async () => {
      const received = new Map<string, string[]>();
      const services = SERVICES.map((service) => {
        const messages = new KafkaMessages({
          connection: as(service),
          topicPrefix: prefix,
          identity: { ...TEST_IDENTITY, services: [service] },
        });
        for (const topic of Object.keys(TOPICS) as Topic[])
          for (const [group, owner] of Object.entries(TOPICS[topic].groups))
            if (owner === service)
              messages.consume(topic, group, async (batch) => {
                received.set(topic, [...(received.get(topic) ?? []), ...batch.map(({ tenantId }) => tenantId)]);
              });
        for (const subject of Object.keys(ASKERS) as Subject[])
          if (serviceOf(subject) === service) messages.handle(subject, async () => ({ by: service }) as never);
        return { service, messages };
      });
      try {
        for (const { messages } of services) await eventually(() => messages.start(), { timeoutMs: LIMIT_MS });
        const ids = new Map<string, string[]>();
        for (const topic of Object.keys(TOPICS) as Topic[])
          for (const producer of TOPICS[topic].producers) {
            const tenantId = newId('ten');
            await services
              .find(({ service }) => service === producer)!
              .messages.publish(topic, [{ tenantId } as never]);
            if (consumersOf(TOPICS[topic]).length > 0) ids.set(topic, [...(ids.get(topic) ?? []), tenantId]);
          }
        await eventually(
          () => {
            for (const [topic, expected] of ids)
              expect([...(received.get(topic) ?? [])].sort()).toEqual(expected.sort());
          },
          { timeoutMs: LIMIT_MS },
        );
        for (const { service, messages } of services)
          for (const subject of Object.keys(ASKERS) as Subject[])
            if (ASKERS[subject].includes(service))
              expect(await eventually(() => messages.request(subject, {}), { timeoutMs: LIMIT_MS })).toEqual({
                by: serviceOf(subject),
              });
        await Promise.all(services.map(({ messages }) => eventually(() => messages.check())));
      } finally {
        await Promise.all(services.map(({ messages }) => messages.close()));
      }
    });

    it.each(SERVICES)('%s cannot write topics that it must not write', async (service) => {
      const forbidden = topicNames.filter((topic) => !may(service, 'WRITE', topic));
      expect(forbidden.length).toBeGreaterThan(5);
      const publisher = new Publisher(as(service));
      try {
        for (const topic of forbidden)
          await expect(
            publisher.send({ topic, messages: [{ key: 'ten_x', value: Buffer.from('{}') }] }),
          ).rejects.toThrow(`it lacks WRITE on topic "${topic}"`);
      } finally {
        await publisher.close();
      }
    });

    it.each([
      ['gateway', 'charges'],
      ['gateway', 'credit-news'],
      ['gateway', 'requests.billing.dead'],
      ['metering', 'credit-news'],
      ['metering', 'requests.billing'],
      ['metering', 'tenant-news'],
      ['auth', 'charges'],
      ['billing', 'charges'],
      ['billing', 'usage-events'],
      ['gateway', 'charges.dead'],
    ] as const)('the table has no right for %s to write %s', (service, topic) => {
      expect(may(service, 'WRITE', prefix + topic)).toBe(false);
    });

    it.each(SERVICES)('%s cannot read topics that it must not read, nor dead letters', async (service) => {
      const forbidden = topicNames.filter((topic) => !may(service, 'READ', topic));
      expect(forbidden).toEqual(expect.arrayContaining(topicNames.filter((topic) => topic.endsWith('.dead'))));
      const read: string[] = [];
      const consumers = forbidden.map((topic) => {
        const config = () => ({ groupId: `${names.replyGroups(service)}${randomBytes(8).toString('hex')}` });
        const run = () => ({ eachBatch: async () => void read.push(topic) });
        return new SupervisedConsumer({ connection: as(service), topic, fromBeginning: true, config, run });
      });
      for (const consumer of consumers) consumer.start();
      try {
        await Promise.all(consumers.map(({ refused }) => refused));
        expect(consumers.map(({ lack }) => lack?.message)).toEqual(
          forbidden.map((topic) => `it lacks READ on topic "${topic}"`),
        );
        expect(read).toEqual([]);
      } finally {
        await Promise.all(consumers.map((consumer) => consumer.stop()));
      }
    });

    it('cannot join a group of another service', async () => {
      const config = () => ({ groupId: names.group('usage-events', 'metering') });
      const topic = names.topic('replies');
      const consumer = new SupervisedConsumer({
        ...{ connection: as('gateway'), topic, fromBeginning: true, config },
        run: () => ({ eachBatch: async () => {} }),
      });
      consumer.start();
      await eventually(() => expect(consumer.lack?.message).toMatch(/READ on group ".*usage-events\.metering"/), {
        timeoutMs: LIMIT_MS,
      });
      await consumer.stop();
    });

    it.each(SERVICES)(
      '%s cannot create or delete topics, change settings, grant rights or create users',
      async (service) => {
        const [topic = ''] = rights
          .filter(({ principal, operation }) => principal === `User:${service}` && operation === 'WRITE')
          .map(({ name }) => name);
        const refused = (work: Parameters<typeof withAdmin>[2]) =>
          expect(withAdmin(as(service), ADMIN_LIMIT_MS, work)).rejects.toThrow(/refuses|group coordinator/);
        await refused((admin) => admin.createTopics({ topics: [{ topic: `${prefix}another` }] }));
        await refused((admin) => admin.deleteTopics({ topics: [topic] }));
        await refused((admin) => admin.createPartitions({ topicPartitions: [{ topic, count: 50 }] }));
        await refused((admin) =>
          admin.alterConfigs({
            validateOnly: false,
            resources: [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: '1' }] }],
          }),
        );
        await refused((admin) => admin.createAcls({ acl: [tooMuch(`User:${service}`)] }));
        await refused((admin) => admin.deleteGroups([names.group('charges', 'other')]));
        await expect(
          applyScramUsers(as(service), [{ name: 'gateway', password: 'another-password-of-mine' }]),
        ).rejects.toThrow(/it lacks ALTER on the cluster/);
        await expect(applyRights(as(service), { topicPrefix: prefix })).rejects.toThrow(
          /it lacks DESCRIBE on the cluster/,
        );
      },
    );

    itRemovesGroupsOfItsOwnRepliesAlone({ topics: TOPICS, names, administrator, as });

    itServesWithASecondUser({ topicPrefix: prefix, administrator, connectionOf, first: () => as('gateway') });

    it('is refused without a login or with a wrong password', async () => {
      const open = (connection: KafkaConnection) => {
        const messages = new KafkaMessages({
          connection,
          topicPrefix: prefix,
          identity: { ...TEST_IDENTITY, services: ['gateway'] },
        });
        return expect(messages.start().finally(() => messages.close())).rejects;
      };
      await open({ brokers: kafka.securedBrokers, clientId: 'test' }).toThrow(/without a user/);
      await open(connectionOf('gateway', passwords.billing)).toThrow(/refuses the user/);
      await open(connectionOf('nobody', passwords.gateway)).toThrow(/refuses the user/);
    });

    it('logs in only with its new password once that was set', async () => {
      const before = as('auth');
      passwords.auth = randomBytes(24).toString('hex');
      await makeUsers();
      const ask = (connection: KafkaConnection) =>
        withAdmin(connection, ADMIN_LIMIT_MS, (admin) => admin.describeCluster());
      await eventually(() => ask(as('auth')), { timeoutMs: LIMIT_MS });
      await expect(ask(before)).rejects.toThrow(/refuses the user/);
    });
  });

  const tooMuch = (principal: string, more: Partial<AclEntry> = {}): AclEntry => ({
    ...{ principal, host: '*', operation: AclOperationTypes.WRITE, permissionType: AclPermissionTypes.ALLOW },
    ...{ resourceType: AclResourceTypes.TOPIC, resourceName: names.topic('charges') },
    ...{ resourcePatternType: ResourcePatternTypes.LITERAL, ...more },
  });

  describe('rights that are applied', () => {
    const grant = (...acl: AclEntry[]) =>
      withAdmin(administrator(), ADMIN_LIMIT_MS, (admin) => admin.createAcls({ acl }));
    const states = async () =>
      (await findRights(administrator(), { topicPrefix: prefix })).filter(({ state }) => state !== 'there');
    const apply = () => applyRights(administrator(), { topicPrefix: prefix });

    it('are those of the tables: missing ones are granted, surplus ones revoked, repeats are harmless', async () => {
      await apply();
      await grant(
        tooMuch('User:gateway'),
        tooMuch('User:auth', { resourceName: '*', operation: AclOperationTypes.ALL }),
        tooMuch('User:metering', {
          resourceName: prefix.slice(0, 6),
          resourcePatternType: ResourcePatternTypes.PREFIXED,
        }),
      );
      await withAdmin(administrator(), ADMIN_LIMIT_MS, (admin) =>
        admin.deleteAcls({ filters: [tooMuch('User:metering')] }),
      );
      const all = [
        { right: `User:metering may WRITE topic "${prefix}charges"`, state: 'missing' },
        { right: `User:gateway may WRITE topic "${prefix}charges"`, state: 'surplus' },
        { right: 'User:auth may ALL topic "*"', state: 'surplus' },
        { right: `User:metering may WRITE topic "${prefix.slice(0, 6)}*"`, state: 'surplus' },
      ];
      const byRight = (a: { right: string }, b: { right: string }) => a.right.localeCompare(b.right);
      await eventually(async () => expect((await states()).sort(byRight)).toEqual([...all].sort(byRight)));
      const done = (await apply())!.filter(({ state }) => state !== 'there').map(({ state }) => state);
      expect(done.sort()).toEqual(['granted', 'taken', 'taken', 'taken']);
      expect(await states()).toEqual([]);
      expect((await apply())!.every(({ state }) => state === 'there')).toBe(true);
    });

    it('leave other installations, other users and denials alone', async () => {
      const others = [
        tooMuch('User:gateway', { resourceName: 'another.charges' }),
        tooMuch('User:somebody'),
        tooMuch('User:gateway', { permissionType: AclPermissionTypes.DENY }),
      ];
      await grant(...others);
      await apply();
      const found = await withAdmin(administrator(), ADMIN_LIMIT_MS, (admin) =>
        Promise.all(others.map((each) => admin.describeAcls(each))),
      );
      expect(found.map(({ resources }) => resources.length)).toEqual([1, 1, 1]);
    });
  });
}
