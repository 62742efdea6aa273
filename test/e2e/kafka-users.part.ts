import type { ComposedDeployment, Service } from './composed';

/**
 * Runs inside a service's container with its settings and its password. Prints the result of publishing to each of
 * these topics.
 */
const PUBLISH = `
const { Kafka, logLevel } = require('kafkajs');
const { readFileSync } = require('node:fs');
const { KAFKA_BROKERS, KAFKA_USERNAME: username, KAFKA_PASSWORD_FILE, KAFKA_CA_FILE } = process.env;
const [user, ...topics] = process.argv.slice(1);
const password = readFileSync(KAFKA_PASSWORD_FILE, 'utf8').trim();
const sasl = user === 'nobody' ? undefined : { mechanism: 'scram-sha-512', username, password };
const ssl = KAFKA_CA_FILE ? { ca: readFileSync(KAFKA_CA_FILE) } : false;
const retry = { retries: 3 };
const kafka = new Kafka({ brokers: [KAFKA_BROKERS], ssl, sasl, retry, logLevel: logLevel.NOTHING });
(async () => {
  const outcomes = {};
  for (const topic of topics) {
    const producer = kafka.producer({ allowAutoTopicCreation: false, retry });
    outcomes[topic] = await producer.connect()
      .then(() => producer.send({ topic, messages: [{ key: 'ten_x', value: '{}' }] }))
      .then(() => 'published', (error) => error.type ?? error.cause?.type ?? error.name);
    await producer.disconnect();
  }
  console.log(JSON.stringify(outcomes));
})();`;
const REFUSED = 'TOPIC_AUTHORIZATION_FAILED';

export function kafkaUsersTests(tollgate: ComposedDeployment): void {
  async function publish(service: Service, user: 'its own' | 'nobody', ...topics: string[]): Promise<unknown> {
    const [container = ''] = await tollgate.containers(service);
    return JSON.parse(await tollgate.docker('exec', container, 'node', '-e', PUBLISH, user, ...topics));
  }

  describe('the Kafka user of a service', () => {
    it.each([
      ['gateway', ['charges', 'credit-news', 'tenant-news', 'charges.dead']],
      ['auth', ['charges', 'credit-news', 'usage-events', 'requests.metering']],
      ['metering', ['credit-news', 'tenant-news', 'requests.billing', 'requests.auth']],
      ['billing', ['charges', 'usage-events', 'tenant-news']],
      ['console', ['charges', 'credit-news', 'tenant-news', 'usage-events', 'requests.console']],
    ] as const)('%s cannot publish the messages of other services, from its own container', async (service, topics) => {
      const refused = Object.fromEntries(topics.map((topic) => [topic, REFUSED]));
      expect(await publish(service, 'its own', ...topics)).toEqual(refused);
    });

    it('is required: Kafka refuses connections without a user', async () => {
      expect(await publish('gateway', 'nobody', 'usage-events')).toEqual({
        'usage-events': expect.stringMatching(/^KafkaJS(Connection|NumberOfRetriesExceeded|NonRetriable)/),
      });
    });
  });
}
